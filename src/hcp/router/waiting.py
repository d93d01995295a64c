"""What HAProxy does with a connection to a cluster that sleeps: it tells this process, and waits for a line.

No data of the connection comes here, and nothing is looked at again and again: the line is written when HAProxy has
been told of the pods, so that the look-up after it finds them.
"""

from __future__ import annotations

import json

BACKEND = "asleep"
ACTION = "hcp_wait"
# Seconds: how long a connection is held, and, a little longer, when HAProxy gives up by itself.
HOLD, GIVE_UP = 120, 130

_SCRIPT = """\
core.register_action("%(action)s", {"tcp-req"}, function(txn)
  local host = txn:get_var("sess.key")
  if host == nil then
    return
  end
  local talk = core.tcp()
  talk:settimeout(%(seconds)d)
  if talk:connect(%(address)s) then
    talk:send(host .. "\\n")
    talk:receive("*l")
  end
  talk:close()
end, 0)
"""


def script(socket: str) -> str:
    """The Lua action. It says no more than the host that the connection asks for; `socket` lies beside it."""
    return _SCRIPT % {"action": ACTION, "address": json.dumps(f"unix@{socket}"), "seconds": (HOLD + GIVE_UP) // 2}
