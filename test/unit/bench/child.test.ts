import { afterEach, expect, test } from 'vitest';
import { Child } from '../../../bench/child.ts';

const open: Child[] = [];
afterEach(() => Promise.all(open.splice(0).map((anchor) => anchor.close())));

/** A program that runs `body` for each line that it is sent, with `say` to write one. */
function anchor(body: string): Child {
  const program = `const say = (text) => process.stdout.write(text + '\\n');
    require('node:readline').createInterface(process.stdin).on('line', (line) => { ${body} });`;
  const started = new Child('fake', process.execPath, ['-e', program]);
  open.push(started);
  return started;
}

test('requests are answered one after another by one process', async () => {
  const doubling = anchor('say(JSON.stringify({ twice: 2 * JSON.parse(line).n, op: JSON.parse(line).op }))');
  expect(await doubling.call('double', { n: 2 })).toMatchObject({ twice: 4, op: 'double' });
  expect(await doubling.call('double', { n: 5 })).toMatchObject({ twice: 10 });
});

test('an anchor that dies is told of with its last words, then and ever after', async () => {
  const dying = anchor("console.error('no memory left'); process.exitCode = 3; process.stdin.destroy()");
  await expect(dying.call('work')).rejects.toMatchObject({
    type: 'anchor',
    message: expect.stringMatching(/fake ended \(3\)[^]*no memory left/) as string,
  });
  await expect(dying.call('work')).rejects.toThrow(/fake ended/);
});

test('an anchor that cannot be started is told of', async () => {
  const missing = new Child('fake', '/nowhere/python', []);
  await expect(missing.call('work')).rejects.toThrow(/could not be started/);
});

test.each(["say('Loading model…')", "say('7')"])(
  'an anchor that prints rubbish is not believed: %s',
  async (body) => {
    await expect(anchor(body).call('work')).rejects.toThrow(/which is no JSON object/);
  },
);

test('an anchor that hangs is given up when its time is up', async () => {
  await expect(anchor('').call('work', {}, 50)).rejects.toThrow(/gave no answer to "work" in 50 ms/);
});

test('what an anchor refuses is an error in its words, and it can be asked again', async () => {
  const anew = anchor('say(JSON.stringify(JSON.parse(line).n ? { fine: 1 } : { error: "n is missing" }))');
  await expect(anew.call('work')).rejects.toThrow(/failed at "work": "n is missing"/);
  expect(await anew.call('work', { n: 1 })).toMatchObject({ fine: 1 });
});
