// Package storage has what Temporal's archiver for Google Cloud Storage names, and opens nothing.
package storage

import (
	"context"
	"errors"
)

// ErrNotBuilt is what every call ends with.
var ErrNotBuilt = errors.New("this Temporal server was built without an archive in Google Cloud Storage")

const ScopeFullControl = "https://www.googleapis.com/auth/devstorage.full_control"

type (
	Client         struct{}
	BucketHandle   struct{}
	ObjectHandle   struct{}
	ObjectIterator struct{}
	Reader         struct{}
	Writer         struct{}
	BucketAttrs    struct{}
	ObjectAttrs    struct{ Name string }
	Query          struct{ Prefix string }
)

// NewClient takes any options, and fails: nothing below is ever reached.
func NewClient(context.Context, ...any) (*Client, error) { return nil, ErrNotBuilt }

func (*Client) Bucket(string) *BucketHandle { return nil }

func (*BucketHandle) Object(string) *ObjectHandle                     { return nil }
func (*BucketHandle) Objects(context.Context, *Query) *ObjectIterator { return nil }
func (*BucketHandle) Attrs(context.Context) (*BucketAttrs, error)     { return nil, ErrNotBuilt }
func (*ObjectHandle) NewWriter(context.Context) *Writer               { return nil }
func (*ObjectHandle) NewReader(context.Context) (*Reader, error)      { return nil, ErrNotBuilt }
func (*ObjectHandle) Attrs(context.Context) (*ObjectAttrs, error)     { return nil, ErrNotBuilt }
func (*ObjectIterator) Next() (*ObjectAttrs, error)                   { return nil, ErrNotBuilt }
func (*Reader) Read([]byte) (int, error)                              { return 0, ErrNotBuilt }
func (*Reader) Close() error                                          { return ErrNotBuilt }
func (*Writer) Write([]byte) (int, error)                             { return 0, ErrNotBuilt }
func (*Writer) Close() error                                          { return ErrNotBuilt }
func (*Writer) CloseWithError(error) error                            { return ErrNotBuilt }
