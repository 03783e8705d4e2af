// Package tamis is a client of Tamis' cache door (tamis serve --memcached), and of any memcached
// from 1.6 on.
//
// A [Client] holds connections to one server and may be used by many goroutines. It speaks
// memcached's meta commands. Values may be as long as the server allows, up to a GiB; long ones are
// read and written as streams ([Client.NewReader], [Client.NewWriter]).
//
// An [Array] holds elements of one size in one value, a [List] holds values of any length and other
// arrays. A Tamis server finds an element itself, so that reading one, or a slice, is one round
// trip, and creating or replacing an array is atomic. An ordinary memcached does not know arrays:
// there the client keeps a directory and a key for each element, which costs two round trips.
//
// Errors are typed: compare with [ErrNotFound] and its neighbours by errors.Is, and take the key
// and the operation from an [*Error] by errors.As.
package tamis
