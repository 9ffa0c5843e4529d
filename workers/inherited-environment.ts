/**
 * Variables by which systems and libraries find things. None of them holds a secret but OTEL_EXPORTER_OTLP_HEADERS,
 * without which a worker cannot export its metrics; environments' code sees none of them.
 */
const NAMES = new Set([
  'PATH',
  'HOME',
  'USER',
  'LOGNAME',
  'SHELL',
  'LANG',
  'LANGUAGE',
  'TZ',
  'TERM',
  'TMPDIR',
  'TEMP',
  'TMP',
  'SYSTEMROOT',
  'LD_LIBRARY_PATH',
  'NODE_OPTIONS',
  'NODE_EXTRA_CA_CERTS',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'HTTP_PROXY',
  'HTTPS_PROXY',
  'NO_PROXY',
  'http_proxy',
  'https_proxy',
  'no_proxy',
  'CI',
]);
const PREFIXES = [
  'GRADUS_',
  'OTEL_',
  'LC_',
  'XDG_',
  'TF_',
  'XLA_',
  'CUDA_',
  'NVIDIA_',
  'OMP_',
  'MKL_',
  'OPENBLAS_',
];

/** Names, separated by commas, of variables that workers are to have as well: a judge's API key. */
export const PASS_ENV = 'GRADUS_PASS_ENV';
/** As GRADUS_PASS_ENV, for what environments may read: their code sees nothing else of a worker's variables. */
const HOST_ENV = 'GRADUS_HOST_ENV';

/**
 * What a worker process gets of the variables of the process that starts it: those of the system and its libraries,
 * Gradus's own, and what GRADUS_PASS_ENV names. Whatever else a shell holds (cloud keys, tokens) is nobody's business
 * who runs tools for a model.
 */
export function inheritedEnvironment(env: NodeJS.ProcessEnv = process.env): Record<string, string> {
  const passed = new Set(
    [PASS_ENV, HOST_ENV].flatMap((list) => (env[list] ?? '').split(',')).map((name) => name.trim()),
  );
  return Object.fromEntries(
    Object.entries(env).filter(
      (pair): pair is [string, string] =>
        pair[1] !== undefined &&
        (NAMES.has(pair[0]) || passed.has(pair[0]) || PREFIXES.some((prefix) => pair[0].startsWith(prefix))),
    ),
  );
}
