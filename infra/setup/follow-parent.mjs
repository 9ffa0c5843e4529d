// Preloaded by bootstrap.mjs into the program it starts: file descriptor 3 is a pipe that closes when bootstrap is
// gone, and then the program is asked to end too, so that kill -9 of `npm run …` leaves nothing behind.
import { Socket } from 'node:net';
import process from 'node:process';

const lifeline = new Socket({ fd: 3, readable: true, writable: false });
lifeline.on('close', () => process.kill(process.pid, 'SIGTERM'));
lifeline.on('error', () => lifeline.destroy());
lifeline.resume();
lifeline.unref();
