module github.com/tamis-storage/tamis/clients/go

go 1.21
