// A module of environments whose top level hangs.
const tomorrow = Date.now() + 24 * 3600 * 1000;
while (Date.now() < tomorrow);
export default [];
