// An etcd member: the server of etcd as it is, built for the tests where no etcd is installed.
package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	etcdmain.Main(os.Args)
}
