// Reads tags of images as kcp-operator does: for each line of standard input, a JSON object of a tag and a constraint, whether the tag is a version, and whether what
// depends on the constraint is passed. As the operator does, it passes that for a tag that is none.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"

	"github.com/Masterminds/semver/v3"
)

type question struct {
	Tag        string `json:"tag"`
	Constraint string `json:"constraint"`
}

type answer struct {
	IsVersion bool `json:"isVersion"`
	IsPassed  bool `json:"isPassed"`
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
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			return err
		}
		constraint, err := semver.NewConstraint(asked.Constraint)
		if err != nil {
			return err
		}
		version, err := semver.NewVersion(asked.Tag)
		if err := out.Encode(answer{IsVersion: err == nil, IsPassed: err != nil || constraint.Check(version)}); err != nil {
			return err
		}
	}
	return lines.Err()
}
