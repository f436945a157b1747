// The unchanged etcd server, built for tests where no etcd is installed. With the first arguments
// `etcdutl snapshot` it runs that command of etcdutl.
package main

import (
	"os"

	"go.etcd.io/etcd/etcdutl/v3/etcdutl"
	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() {
	if len(os.Args) > 2 && os.Args[1] == "etcdutl" {
		snapshot := etcdutl.NewSnapshotCommand()
		snapshot.SetArgs(os.Args[3:])
		if snapshot.Execute() != nil {
			os.Exit(1)
		}
		return
	}
	etcdmain.Main(os.Args)
}
