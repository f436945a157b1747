module strata/bench/go-client

go 1.26.0
