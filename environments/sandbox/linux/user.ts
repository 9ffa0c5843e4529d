/** Who a sandboxed program is, inside and, where we are root, outside. */
export const SANDBOX_UID = 64001;

export const PASSWD = `root:x:0:0:root:/:/usr/sbin/nologin\nsandbox:x:${SANDBOX_UID}:${SANDBOX_UID}:sandbox:/tmp:/bin/sh\n`;
export const GROUP = `root:x:0:\nsandbox:x:${SANDBOX_UID}:\n`;

/**
 * Becomes nobody in particular before a sandbox is started. Started as root, it is a way out: /proc/sys keeps root's
 * rights over the host's settings, whatever capabilities are dropped.
 */
export const setprivArguments = (uid: number = SANDBOX_UID): string[] => [
  `--reuid=${uid}`,
  `--regid=${uid}`,
  '--clear-groups',
  '--no-new-privs',
];
