package main

import (
	"syscall"
	"unsafe"
)

const (
	memfdCreate  = 319
	memfdCloexec = 1
)

func memfd(name string) (int, error) {
	text, err := syscall.BytePtrFromString(name)
	if err != nil {
		return 0, err
	}
	fd, _, number := syscall.Syscall(memfdCreate, uintptr(unsafe.Pointer(text)), memfdCloexec, 0)
	if number != 0 {
		return 0, number
	}
	return int(fd), nil
}
