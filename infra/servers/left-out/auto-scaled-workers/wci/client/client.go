// Package client answers as if no worker controller had ever been made, and refuses to make one.
package client

import (
	"context"

	deploymentpb "go.temporal.io/api/deployment/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/auto-scaled-workers/wci/workflow/iface"
	"go.temporal.io/server/common/namespace"
	"go.uber.org/fx"
)

const notBuilt = "this Temporal server was built without workers that scale by themselves"

// Client is what Temporal's server asks of worker controllers.
type Client interface {
	DescribeWorkerControllerInstance(
		context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
	) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error)

	UpdateWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, of *deploymentpb.WorkerDeploymentVersion,
		conflictToken []byte, identity string, upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) (*iface.UpdateWorkerControllerInstanceResponse, error)

	ValidateWorkerControllerInstanceSpec(
		ctx context.Context, in *namespace.Namespace, of *deploymentpb.WorkerDeploymentVersion,
		identity string, upsert map[string]iface.ScalingGroupSpecUpdate, remove []string,
	) error

	DeleteWorkerControllerInstance(
		ctx context.Context, in *namespace.Namespace, of *deploymentpb.WorkerDeploymentVersion, identity string,
	) error
}

var Module = fx.Provide(func() Client { return none{} })

type none struct{}

func (none) DescribeWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
) (*iface.QueryDescribeWorkerControllerInstanceResponse, []byte, error) {
	return nil, nil, serviceerror.NewNotFound(notBuilt)
}

func (none) UpdateWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
	[]byte, string, map[string]iface.ScalingGroupSpecUpdate, []string,
) (*iface.UpdateWorkerControllerInstanceResponse, error) {
	return nil, serviceerror.NewInvalidArgument(notBuilt)
}

func (none) ValidateWorkerControllerInstanceSpec(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion,
	string, map[string]iface.ScalingGroupSpecUpdate, []string,
) error {
	return serviceerror.NewInvalidArgument(notBuilt)
}

// There is none to be deleted, as after a deletion.
func (none) DeleteWorkerControllerInstance(
	context.Context, *namespace.Namespace, *deploymentpb.WorkerDeploymentVersion, string,
) error {
	return nil
}
