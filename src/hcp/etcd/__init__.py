"""Looking after an etcd: its size, its alarms, and the room that deleted data still takes."""
