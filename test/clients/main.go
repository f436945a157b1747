// Command clients runs client-go's informers against a cache server and reports what they see.
//
// It holds typed, dynamic and metadata informers over every shard and cluster. It reads commands
// from standard input, one a line, and answers each with one line of JSON on standard output:
//
//	write     creates, changes and deletes objects of every type      → {"event":"written"}
//	compare   waits until every store equals the server's list         → {"event":"compared","informers":[…]}
//	count     requests of the informers since the last count           → {"event":"counted","requests":{…}}
//	live 10   writes one object after the other for that many seconds   → {"event":"lived","lived":{…}}
//
// It ends when standard input ends. KUBE_FEATURE_WatchListClient chooses how informers begin.
// clients.test.ts starts and stops the server.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// Informers watch everywhere; writes go to single places.
const (
	everywhere = "/services/cache/shards/*/clusters/*"
	place      = "/services/cache/shards/%s/clusters/%s"
)

func main() {
	server := flag.String("server", "", "URL of the cache server, without a path")
	certificate := flag.String("cert", "", "file of the client certificate")
	key := flag.String("key", "", "file of its key")
	readerCertificate := flag.String("reader-cert", "", "file of another client certificate, for the informers")
	readerKey := flag.String("reader-key", "", "file of its key")
	flag.Parse()

	writer := pair{*certificate, *key}
	reader := writer
	if *readerCertificate != "" {
		reader = pair{*readerCertificate, *readerKey}
	}
	if err := run(context.Background(), *server, writer, reader); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// pair names the files of a client certificate and its key.
type pair struct{ certificate, key string }

func run(ctx context.Context, server string, writes, reads pair) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	configOf := func(as pair, path string) *rest.Config {
		return &rest.Config{
			Host:            server + path,
			TLSClientConfig: rest.TLSClientConfig{Insecure: true, CertFile: as.certificate, KeyFile: as.key},
			QPS:             -1,
		}
	}
	counts, seen := newCounts(), &delays{}
	informers, err := startInformers(ctx, configOf(reads, everywhere), counts, seen)
	if err != nil {
		return err
	}
	writer, err := newWriter(func(path string) *rest.Config { return configOf(writes, path) })
	if err != nil {
		return err
	}
	live := &liveWriter{places: writer.places}
	say(map[string]any{"event": "synced", "informers": len(informers)})

	commands := bufio.NewScanner(os.Stdin)
	for commands.Scan() {
		command, argument, _ := strings.Cut(commands.Text(), " ")
		switch command {
		case "write":
			if err := writer.write(ctx); err != nil {
				return err
			}
			say(map[string]any{"event": "written"})
		case "compare":
			say(map[string]any{"event": "compared", "informers": compare(ctx, informers)})
		case "count":
			say(map[string]any{"event": "counted", "requests": counts.take()})
		case "live":
			seconds, err := strconv.Atoi(argument)
			if err != nil {
				return err
			}
			say(map[string]any{"event": "lived", "lived": live.run(ctx, seen, time.Duration(seconds)*time.Second)})
		default:
			return fmt.Errorf("unknown command %q", command)
		}
	}
	return commands.Err()
}

func say(message any) {
	line, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(line))
}
