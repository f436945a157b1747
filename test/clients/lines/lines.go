// Package lines answers a test's questions: each line of standard input is a question in JSON, and
// the program answers it with one line of JSON.
package lines

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

const bytesMax = 64 * 1024 * 1024

// Answer runs until standard input ends. It ends the program with exit code 1 if a line is no
// question or has no answer.
func Answer[Question, Reply any](reply func(Question) (Reply, error)) {
	if err := answer(reply); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func answer[Question, Reply any](reply func(Question) (Reply, error)) error {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, bytesMax)
	out := json.NewEncoder(os.Stdout)
	for in.Scan() {
		var asked Question
		if err := json.Unmarshal(in.Bytes(), &asked); err != nil {
			return err
		}
		replied, err := reply(asked)
		if err != nil {
			return err
		}
		if err := out.Encode(replied); err != nil {
			return err
		}
	}
	return in.Err()
}
