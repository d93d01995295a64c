module mirror-proxy

go 1.24
