// What a project imports from "gradus/protocols": environments of other people's servers and files.

export { harbor } from '../../families/swe/harbor/environment.ts';
export type { HarborChoices } from '../../families/swe/harbor/environment.ts';
export { jsonl } from './jsonl.ts';
export type { JsonlChoices } from './jsonl.ts';
export { mcpSessions, mcpTools } from './mcp.ts';
export type { McpPlace, McpServerOf, StatefulMcpChoices, StatelessMcpChoices } from './mcp.ts';
export type { McpServer } from './mcp-connection.ts';
export { nemoGym } from './nemo-gym.ts';
export type { NemoGymChoices } from './nemo-gym.ts';
export { openEnv } from './openenv.ts';
export type { OpenEnvChoices, OpenEnvTool } from './openenv.ts';
export { ors } from './ors.ts';
export type { OrsChoices, SplitPart as Part } from './ors.ts';
export type { Row, RowChoices, SplitBy } from './rows.ts';
export type { ToolChoices } from './session-tools.ts';
