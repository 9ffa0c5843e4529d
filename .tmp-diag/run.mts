import { NativeConnection, Worker } from '@temporalio/worker';
const { withInstallation } = await import('../bench/durable-run.ts');
const ac = new AbortController();
await withInstallation({ quick: false, say: () => {}, signal: ac.signal } as any, async (client: any, inst: any) => {
  const connection = await NativeConnection.connect({ address: inst.settings.temporalAddress });
  const worker = await Worker.create({ connection, namespace: inst.settings.namespace, taskQueue: 'diag', workflowsPath: new URL('./wf.ts', import.meta.url).pathname, activities: { noop: async () => {} } });
  const running = worker.run();
  for (const n of [50, 200]) {
    const t = performance.now();
    const handle = await client.workflow.start('loop', { taskQueue: 'diag', workflowId: 'w' + n, args: [n] });
    await handle.result();
    console.log(n, ((performance.now() - t) / n).toFixed(2), 'ms per activity');
    const h = await handle.fetchHistory();
    const ev = h.events.map((e: any) => ({ t: Number(e.eventTime.seconds) * 1000 + e.eventTime.nanos / 1e6, type: e.eventType }));
    const gaps: any = {};
    for (let i = 1; i < ev.length; i++) (gaps[ev[i - 1].type + '>' + ev[i].type] ??= []).push(ev[i].t - ev[i - 1].t);
    for (const [k, v] of Object.entries(gaps) as any) { v.sort((a: number, b: number) => a - b); console.log(k, v.length, 'median', v[v.length >> 1].toFixed(2)); }
  }
  worker.shutdown(); await running; await connection.close();
});
