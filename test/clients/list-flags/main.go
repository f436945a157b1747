// Reads list flags as pflag does. Each line of standard input is a JSON array of the values of one
// flag. The answer is the resulting list of texts, or why pflag refuses it.
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
