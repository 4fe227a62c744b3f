// Fake devices: devices RTT_S.
//
// Answers, RTT_S seconds later, each line that comes in on any address of this machine. Prints its
// port, and ends with its standard input.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"syscall"
	"time"
)

// The kernel gives each its share of the connections, so that no backlog runs over: ten thousand
// clients connect at once, and one whose SYN is dropped tries again a second later.
const listeners = 4

// Of Linux, on all the architectures that Python has wheels for; package syscall has no name for it.
const soReuseport = 15

var answer = []byte("fake device, version 1.0, up for 3 days\n")

func serve(connection net.Conn, rtt time.Duration) {
	defer connection.Close()
	buffer := make([]byte, 256)
	for {
		end, err := connection.Read(buffer)
		if err != nil {
			return
		}
		if bytes.HasSuffix(buffer[:end], []byte("\n")) {
			time.Sleep(rtt)
			if _, err := connection.Write(answer); err != nil {
				return
			}
		}
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "devices:", err)
	os.Exit(1)
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: devices RTT_S")
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fail(err)
	}
	rtt := time.Duration(seconds * float64(time.Second))
	shared := net.ListenConfig{Control: func(_, _ string, raw syscall.RawConn) (err error) {
		refused := raw.Control(func(fd uintptr) {
			err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, soReuseport, 1)
		})
		if refused != nil {
			return refused
		}
		return err
	}}
	port := 0
	for number := 0; number < listeners; number++ {
		address := fmt.Sprintf("0.0.0.0:%d", port)
		listener, err := shared.Listen(context.Background(), "tcp4", address)
		if err != nil {
			fail(err)
		}
		port = listener.Addr().(*net.TCPAddr).Port
		go func() {
			for {
				connection, err := listener.Accept()
				if err != nil {
					fail(err)
				}
				go serve(connection, rtt)
			}
		}()
	}
	fmt.Println(port)
	_, _ = io.Copy(io.Discard, os.Stdin)
}
