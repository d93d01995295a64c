package htpasswd

import (
	"crypto/md5"
	"crypto/pbkdf2"
	"crypto/sha1"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strconv"
	"strings"

	"golang.org/x/crypto/bcrypt"
)

// matches tells whether a hash is the one of this password: bcrypt, {SHA} and apr1 of htpasswd, and PBKDF2.
func matches(hash, password string) bool {
	switch {
	case strings.HasPrefix(hash, "$2"):
		return bcrypt.CompareHashAndPassword([]byte(hash), []byte(password)) == nil
	case strings.HasPrefix(hash, "{SHA}"):
		sum := sha1.Sum([]byte(password))
		return same(strings.TrimPrefix(hash, "{SHA}"), base64.StdEncoding.EncodeToString(sum[:]))
	case strings.HasPrefix(hash, apr1):
		salt, _, _ := strings.Cut(strings.TrimPrefix(hash, apr1), "$")
		return same(hash, apr1Hash(password, salt))
	case strings.HasPrefix(hash, "$pbkdf2-sha256$"):
		return pbkdf2Matches(hash, password)
	}
	return false
}

func same(one, other string) bool {
	return subtle.ConstantTimeCompare([]byte(one), []byte(other)) == 1
}

// pbkdf2Matches reads $pbkdf2-sha256$rounds$salt$sum; plus signs of base64 are written as dots.
func pbkdf2Matches(hash, password string) bool {
	parts := strings.Split(hash, "$")
	if len(parts) != 5 {
		return false
	}
	rounds, err := strconv.Atoi(parts[2])
	if err != nil || rounds < 1 || rounds > 10_000_000 {
		return false
	}
	salt, err := unpack(parts[3])
	if err != nil {
		return false
	}
	wanted, err := unpack(parts[4])
	if err != nil || len(wanted) == 0 {
		return false
	}
	sum, err := pbkdf2.Key(sha256.New, password, salt, rounds, len(wanted))
	return err == nil && subtle.ConstantTimeCompare(sum, wanted) == 1
}

func unpack(text string) ([]byte, error) {
	return base64.RawStdEncoding.DecodeString(strings.ReplaceAll(text, ".", "+"))
}

const (
	apr1     = "$apr1$"
	alphabet = "./0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// apr1Hash is Apache's MD5 with a thousand rounds.
func apr1Hash(password, salt string) string {
	if len(salt) > 8 {
		salt = salt[:8]
	}
	inner := md5.Sum([]byte(password + salt + password))
	first := md5.New()
	first.Write([]byte(password + apr1 + salt))
	for left := len(password); left > 0; left -= 16 {
		first.Write(inner[:min(left, 16)])
	}
	for left := len(password); left > 0; left >>= 1 {
		if left&1 == 1 {
			first.Write([]byte{0})
		} else {
			first.Write([]byte(password[:1]))
		}
	}
	sum := first.Sum(nil)
	for round := range 1000 {
		next := md5.New()
		if round&1 == 1 {
			next.Write([]byte(password))
		} else {
			next.Write(sum)
		}
		if round%3 != 0 {
			next.Write([]byte(salt))
		}
		if round%7 != 0 {
			next.Write([]byte(password))
		}
		if round&1 == 1 {
			next.Write(sum)
		} else {
			next.Write([]byte(password))
		}
		sum = next.Sum(nil)
	}
	var text strings.Builder
	letters := func(value uint, count int) {
		for range count {
			text.WriteByte(alphabet[value&0x3f])
			value >>= 6
		}
	}
	for _, place := range [][3]int{{0, 6, 12}, {1, 7, 13}, {2, 8, 14}, {3, 9, 15}, {4, 10, 5}} {
		letters(uint(sum[place[0]])<<16|uint(sum[place[1]])<<8|uint(sum[place[2]]), 4)
	}
	letters(uint(sum[11]), 2)
	return apr1 + salt + "$" + text.String()
}
