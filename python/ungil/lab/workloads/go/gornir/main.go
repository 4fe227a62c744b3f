//go:build gornir

// gornir, as its examples use it: gornir ITEMS RTT_S PORT LOGGER.
//
// The work of ../fanout_work.py: a host for each item in an inventory in memory, the parallel
// runner, which knows no limit, and no processors. LOGGER is logrus, which all of gornir's examples
// take, or null, which it has as well. Prints how many items came back.
//
// It is built in a copy of github.com/nornir-automation/gornir, outside of this project:
//
//	go build -tags gornir -o gornir .../python/ungil/lab/workloads/go/gornir/main.go
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"

	"github.com/nornir-automation/gornir/pkg/gornir"
	"github.com/nornir-automation/gornir/pkg/plugins/logger"
	"github.com/nornir-automation/gornir/pkg/plugins/runner"
)

var question = []byte("show version\n")

// sleep takes one RTT.
type sleep struct{ rtt time.Duration }

func (s *sleep) Metadata() *gornir.TaskMetadata { return nil }

func (s *sleep) Run(context.Context, gornir.Logger, *gornir.Host) (gornir.TaskInstanceResult, error) {
	time.Sleep(s.rtt)
	return true, nil
}

// talk asks a device.
type talk struct{}

func (t *talk) Metadata() *gornir.TaskMetadata { return nil }

func (t *talk) Run(_ context.Context, _ gornir.Logger, host *gornir.Host) (gornir.TaskInstanceResult, error) {
	connection, err := net.Dial("tcp", fmt.Sprintf("%s:%d", host.Hostname, host.Port))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	if _, err := connection.Write(question); err != nil {
		return nil, err
	}
	answer := make([]byte, 256)
	for end := 0; ; {
		more, err := connection.Read(answer[end:])
		end += more
		if bytes.HasSuffix(answer[:end], []byte("\n")) {
			return answer[:end], nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: gornir ITEMS RTT_S PORT LOGGER")
		os.Exit(2)
	}
	items, itemsErr := strconv.Atoi(os.Args[1])
	seconds, secondsErr := strconv.ParseFloat(os.Args[2], 64)
	port, portErr := strconv.ParseUint(os.Args[3], 10, 16)
	for _, err := range []error{itemsErr, secondsErr, portErr} {
		if err != nil {
			fmt.Fprintln(os.Stderr, "gornir:", err)
			os.Exit(2)
		}
	}
	var log gornir.Logger = logger.NewLogrus(false)
	if os.Args[4] == "null" {
		log = logger.NewNull()
	}
	hosts := make(map[string]*gornir.Host, items)
	for item := 0; item < items; item++ {
		hosts[fmt.Sprintf("host%d", item)] = &gornir.Host{
			Hostname: fmt.Sprintf("127.1.%d.%d", item/250, item%250+1),
			Port:     uint16(port),
		}
	}
	gr := gornir.New().
		WithInventory(gornir.Inventory{Hosts: hosts}).
		WithLogger(log).
		WithRunner(runner.Parallel())
	var task gornir.Task = &sleep{time.Duration(seconds * float64(time.Second))}
	if port != 0 {
		task = &talk{}
	}
	results, err := gr.RunSync(context.Background(), task)
	if err != nil {
		fmt.Fprintln(os.Stderr, "gornir:", err)
		os.Exit(1)
	}
	done := 0
	for result := range results {
		if result.Err() == nil {
			done++
		} else {
			fmt.Fprintln(os.Stderr, result.Err())
		}
	}
	fmt.Println(done, 0, 0)
}
