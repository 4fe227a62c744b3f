// Fake devices: devices RTT_S.
//
// Answers, RTT_S seconds later, each line that comes in on any address of this machine. Prints its
// port, and ends with its standard input.
//
// It is to cost so little that the clients are what is measured, on as few cores as there are: so it
// is one thread with an epoll of its own, not a goroutine for each connection.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strconv"
	"syscall"
	"time"
)

// The kernel gives each its share of the connections, so that no backlog runs over: ten thousand
// clients connect at once, and one whose SYN is dropped tries again a second later.
const (
	listeners = 4
	backlog   = 4096
)

// Of Linux, on all the architectures that Python has wheels for; package syscall has no name for it.
const soReuseport = 15

var answer = []byte("fake device, version 1.0, up for 3 days\n")

// due is an answer that a connection waits for. The RTT is the same for all, so they are due in the
// order of their questions.
type due struct {
	at         time.Time
	fd, number int
}

type devices struct {
	rtt   time.Duration
	epoll int
	// The listeners' descriptors.
	listening map[int]bool
	// The number of the connection that has a descriptor now; an answer to an earlier one is void.
	numbers map[int]int
	last    int
	dues    []due
	buffer  [256]byte
}

func fail(doing string, err error) {
	fmt.Fprintf(os.Stderr, "devices: %s: %v\n", doing, err)
	os.Exit(1)
}

func (d *devices) listen(port int) int {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_NONBLOCK, 0)
	if err != nil {
		fail("socket", err)
	}
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, soReuseport, 1); err != nil {
		fail("SO_REUSEPORT", err)
	}
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port}); err != nil {
		fail("bind", err)
	}
	if err := syscall.Listen(fd, backlog); err != nil {
		fail("listen", err)
	}
	name, err := syscall.Getsockname(fd)
	if err != nil {
		fail("getsockname", err)
	}
	d.listening[fd] = true
	d.watch(fd)
	return name.(*syscall.SockaddrInet4).Port
}

func (d *devices) watch(fd int) {
	event := syscall.EpollEvent{Events: syscall.EPOLLIN, Fd: int32(fd)}
	if err := syscall.EpollCtl(d.epoll, syscall.EPOLL_CTL_ADD, fd, &event); err != nil {
		fail("epoll_ctl", err)
	}
}

// accept takes all who wait.
func (d *devices) accept(listener int) {
	for {
		fd, _, err := syscall.Accept4(listener, syscall.SOCK_NONBLOCK)
		switch err {
		case nil:
			d.last++
			d.numbers[fd] = d.last
			d.watch(fd)
		case syscall.EAGAIN:
			return
		case syscall.EINTR, syscall.ECONNABORTED:
		default:
			fail("accept", err)
		}
	}
}

// hear takes what a client says: a line, which is answered later, or that it is gone.
func (d *devices) hear(fd int) {
	end, err := syscall.Read(fd, d.buffer[:])
	switch {
	case err == syscall.EAGAIN || err == syscall.EINTR:
	case err != nil || end == 0:
		delete(d.numbers, fd)
		syscall.Close(fd)
	case bytes.HasSuffix(d.buffer[:end], []byte("\n")):
		d.dues = append(d.dues, due{time.Now().Add(d.rtt), fd, d.numbers[fd]})
	}
}

// answerDue answers whoever has waited long enough, and returns the milliseconds to the next one.
func (d *devices) answerDue() int {
	for len(d.dues) > 0 {
		first := d.dues[0]
		if left := time.Until(first.at); left > 0 {
			return int((left + time.Millisecond - 1) / time.Millisecond)
		}
		d.dues = d.dues[1:]
		if d.numbers[first.fd] == first.number {
			// A client that is gone is noticed when it is read from.
			_, _ = syscall.Write(first.fd, answer)
		}
	}
	return -1
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: devices RTT_S")
		os.Exit(2)
	}
	seconds, err := strconv.ParseFloat(os.Args[1], 64)
	if err != nil {
		fail("RTT_S", err)
	}
	epoll, err := syscall.EpollCreate1(0)
	if err != nil {
		fail("epoll_create1", err)
	}
	d := &devices{
		rtt:       time.Duration(seconds * float64(time.Second)),
		epoll:     epoll,
		listening: map[int]bool{},
		numbers:   map[int]int{},
	}
	port := 0
	for number := 0; number < listeners; number++ {
		port = d.listen(port)
	}
	fmt.Println(port)
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	events := make([]syscall.EpollEvent, 512)
	for {
		count, err := syscall.EpollWait(d.epoll, events, d.answerDue())
		if err != nil && err != syscall.EINTR {
			fail("epoll_wait", err)
		}
		for number := 0; number < count; number++ {
			if fd := int(events[number].Fd); d.listening[fd] {
				d.accept(fd)
			} else {
				d.hear(fd)
			}
		}
	}
}
