import { proxyActivities } from '@temporalio/workflow';
const { noop } = proxyActivities<{ noop(): Promise<void> }>({ startToCloseTimeout: '10s' });
export async function loop(n: number) { for (let i = 0; i < n; i++) await noop(); }
