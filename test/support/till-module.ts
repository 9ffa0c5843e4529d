import type { DemonstrationTurn } from '../../environments/contract/environment.ts';
import { ors } from '../../environments/connectors/protocols/ors.ts';

// The till of protocol-servers/ors_server.py, which TILL_URL names, as a host loads it, with somebody who knows how to pay.

const MOST = 9;

const till = await ors({ url: process.env['TILL_URL']!, effects: { count: 'pure' } });

export default {
  ...till,
  demonstrate({ prompt }: { prompt: string }) {
    const goal = Number(/\d+/u.exec(prompt)![0]);
    const turns: DemonstrationTurn[] = [];
    for (let total = 0; total < goal;) {
      const amount = Math.min(MOST, goal - total);
      total += amount;
      turns.push({ call: { name: 'pay', arguments: { amount } }, observation: `${total} of ${goal}` });
      if (total < goal) turns.push({ call: { name: 'count', arguments: {} }, observation: String(total) });
    }
    return { turns, weight: 1 };
  },
};
