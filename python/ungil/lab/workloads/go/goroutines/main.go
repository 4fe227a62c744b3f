// Goroutines without anything else: goroutines ITEMS RTT_S PORT LIMIT.
//
// The work of ../fanout_work.py. LIMIT 0 is a goroutine for each item, else that many goroutines
// take items from a channel. Prints how many items came back.
package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"strconv"
	"sync"
	"time"
)

var question = []byte("show version\n")

// arguments are the numbers of the command line, or end the program.
func arguments(names ...string) []float64 {
	if len(os.Args) != len(names)+1 {
		fmt.Fprintln(os.Stderr, "usage: goroutines", names)
		os.Exit(2)
	}
	var numbers []float64
	for _, word := range os.Args[1:] {
		number, err := strconv.ParseFloat(word, 64)
		if err != nil {
			fmt.Fprintln(os.Stderr, "goroutines:", err)
			os.Exit(2)
		}
		numbers = append(numbers, number)
	}
	return numbers
}

// talk asks a device and returns whether it answered a line.
func talk(item, port int) bool {
	connection, err := net.Dial("tcp", fmt.Sprintf("127.1.%d.%d:%d", item/250, item%250+1, port))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	defer connection.Close()
	if _, err := connection.Write(question); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return false
	}
	answer := make([]byte, 256)
	for end := 0; ; {
		more, err := connection.Read(answer[end:])
		end += more
		if bytes.HasSuffix(answer[:end], []byte("\n")) {
			return true
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return false
		}
	}
}

func main() {
	numbers := arguments("ITEMS", "RTT_S", "PORT", "LIMIT")
	items, port, limit := int(numbers[0]), int(numbers[2]), int(numbers[3])
	rtt := time.Duration(numbers[1] * float64(time.Second))
	work := func(item int) bool {
		if port != 0 {
			return talk(item, port)
		}
		time.Sleep(rtt)
		return true
	}

	var everybody sync.WaitGroup
	results := make(chan bool, limit)
	if limit == 0 {
		results = make(chan bool, items)
		everybody.Add(items)
		for item := 0; item < items; item++ {
			go func(item int) {
				defer everybody.Done()
				results <- work(item)
			}(item)
		}
	} else {
		todo := make(chan int, limit)
		go func() {
			for item := 0; item < items; item++ {
				todo <- item
			}
			close(todo)
		}()
		everybody.Add(limit)
		for worker := 0; worker < limit; worker++ {
			go func() {
				defer everybody.Done()
				for item := range todo {
					results <- work(item)
				}
			}()
		}
	}
	go func() {
		everybody.Wait()
		close(results)
	}()
	done := 0
	for ok := range results {
		if ok {
			done++
		}
	}
	fmt.Println(done, 0, 0)
}
