module hosted-secrets

go 1.24
