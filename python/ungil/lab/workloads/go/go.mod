module ungil/bench

go 1.21
