// Package workercomponent adds nothing to the worker of each namespace.
package workercomponent

import "go.uber.org/fx"

var Module = fx.Options()
