"""Names of protocols, as /etc/protocols has them: minimal images and machines lack the file.

Without it nft shows numbers where kube-proxy expects names. Whenever kube-proxy compares all its rules with the
kernel's (every hour, and when a node's zone changes) it then adds what is there already, and takes the same entries
away under the name it does not know: every Service of the node is gone.
"""

PATH = "etc/protocols"
TEXT = """ip\t0\tIP
icmp\t1\tICMP
igmp\t2\tIGMP
ipencap\t4\tIP-ENCAP
tcp\t6\tTCP
udp\t17\tUDP
ipv6\t41\tIPv6
gre\t47\tGRE
esp\t50\tIPSEC-ESP
ah\t51\tIPSEC-AH
ipv6-icmp\t58\tIPv6-ICMP
vrrp\t112\tVRRP
sctp\t132\tSCTP
udplite\t136\tUDPLite
"""
