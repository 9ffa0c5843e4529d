import { GradusError, messageOf } from '../errors.ts';
import { suggestion } from '../did-you-mean.ts';
import type { Extension } from './extension.ts';

type Kind = Extension['extends'];
type Of<K extends Kind> = Extract<Extension, { extends: K }>;

const WORDS: Record<Kind, string> = {
  method: 'method',
  'reward-rule': 'rule of the reward',
  dialect: 'dialect',
  'agent-loop': 'agent loop',
};

/** What the modules of a project have brought to this process, by kind and name. */
const known = new Map<string, Extension>();
const keyOf = (kind: Kind, name: string): string => `${kind} ${name}`;

/** Throws GradusError('spec', 'extension') where another one has its kind and name. */
export function register(extension: Extension): void {
  const key = keyOf(extension.extends, extension.name);
  const other = known.get(key);
  if (other !== undefined && other !== extension) {
    throw new GradusError(
      'spec',
      'extension',
      `two modules bring a ${WORDS[extension.extends]} called "${extension.name}": rename one`,
    );
  }
  known.set(key, extension);
}

/** Throws GradusError('spec', 'extension') for one that no module has brought to this process. */
export function extensionOf<K extends Kind>(kind: K, name: string): Of<K> {
  const found = known.get(keyOf(kind, name));
  if (found !== undefined) return found as Of<K>;
  const names = [...known.values()].filter((one) => one.extends === kind).map((one) => one.name);
  throw new GradusError(
    'spec',
    'extension',
    `no ${WORDS[kind]} called "${name}" is known here${suggestion(name, names) || '.'} ` +
      'Its module is named in GRADUS_EXTENSIONS, or in package.json as "gradus": {"extensions": ["./FILE.ts"]}',
  );
}

/** Why a spec cannot name one so: it is not known here, or does not take these options. Empty where it can. */
export function refuseExtension(
  kind: Kind,
  { name, options }: { name: string; options: unknown },
): { field: string; message: string }[] {
  try {
    const { error } = extensionOf(kind, name).options.safeParse(options);
    return (error?.issues ?? []).map(({ path, message }) => ({
      field: ['options', ...path].join('.'),
      message,
    }));
  } catch (error) {
    return [{ field: 'name', message: messageOf(error) }];
  }
}
