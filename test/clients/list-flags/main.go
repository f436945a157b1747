// Reads list flags as pflag does: for each line of standard input, a JSON array of values that one flag is given, the texts that it has then, or why not.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/pflag"
)

type answer struct {
	Texts   []string `json:"texts"`
	Refused string   `json:"refused,omitempty"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	lines := bufio.NewScanner(os.Stdin)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var values []string
		if err := json.Unmarshal(lines.Bytes(), &values); err != nil {
			return err
		}
		if err := out.Encode(read(values)); err != nil {
			return err
		}
	}
	return lines.Err()
}

func read(values []string) answer {
	flags := pflag.NewFlagSet("list", pflag.ContinueOnError)
	texts := flags.StringSlice("list", nil, "")
	for _, value := range values {
		if err := flags.Set("list", value); err != nil {
			return answer{Texts: []string{}, Refused: err.Error()}
		}
	}
	return answer{Texts: append([]string{}, *texts...)}
}
