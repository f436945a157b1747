// Reads list flags as pflag does: for each line of standard input, a JSON array of values that one flag is given, the texts that it has then, or why not.
package main

import (
	"github.com/spf13/pflag"

	"strata/test/clients/lines"
)

type answer struct {
	Texts   []string `json:"texts"`
	Refused string   `json:"refused,omitempty"`
}

func main() {
	lines.Answer(func(values []string) (answer, error) { return read(values), nil })
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
