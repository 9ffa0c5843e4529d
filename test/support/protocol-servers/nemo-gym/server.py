"""The counter that NeMo Gym has as its example of sessions: `nemo_gym_server.py PORT`."""

import sys
from unittest.mock import MagicMock

import uvicorn
from nemo_gym.server_utils import ServerClient
from resources_servers.example_session_state_mgmt.app import (
    StatefulCounterResourcesServer,
    StatefulCounterResourcesServerConfig,
)

if __name__ == "__main__":
    port = int(sys.argv[1])
    config = StatefulCounterResourcesServerConfig(host="127.0.0.1", port=port, entrypoint="", name="counter")
    # It asks no other server of NeMo Gym's, and without a cluster of Ray there is none.
    server = StatefulCounterResourcesServer(config=config, server_client=MagicMock(spec=ServerClient))
    uvicorn.run(server.setup_webserver(), host="127.0.0.1", port=port, log_level="warning")
