import { GradusError } from '../core/errors.ts';

/** What can be run here, by the names that `config.json` has for them. */
export const ARCHITECTURES = ['LlamaForCausalLM', 'Qwen2ForCausalLM', 'Qwen3ForCausalLM'] as const;

interface Foreign {
  is: RegExp;
  /** What it has that neither the decoder nor the learner can compute. */
  needs: string;
  /** What would run it, or what to take instead. */
  instead: string;
}

const DENSE = 'take a dense model of the same makers';
const ELSEWHERE =
  'other software (transformers, vLLM) may run it, and it cannot be trained here until the decoder and the learner have that, too';

/** The first that fits. */
const FOREIGN: readonly Foreign[] = [
  {
    is: /Mamba|Rwkv|RWKV|Jamba|Zamba|Recurrent|Bamba|Next/,
    needs: 'recurrent layers or linear attention',
    instead: ELSEWHERE,
  },
  {
    is: /moe|mixtral|deepseek/i,
    needs: 'mixture-of-experts layers',
    instead: `${DENSE} (such as Qwen3-0.6B to Qwen3-32B); ${ELSEWHERE}`,
  },
  {
    is: /VL|Vision|Llava|Mllama|ImageText|Audio|Omni|ForConditionalGeneration/,
    needs: 'an encoder of images or sound, or of texts of their own',
    instead: `take the language model alone, where its makers publish it; ${ELSEWHERE}`,
  },
  {
    is: /SequenceClassification|RewardModel|TokenClassification|QuestionAnswering|Embedding|MaskedLM/,
    needs: 'a head that gives scores in place of next tokens',
    instead:
      "take the model of the same makers whose name ends in ForCausalLM; a judge or a reward model is asked by a server's address",
  },
  {
    is: /^Mistral/,
    needs: 'sliding-window attention, where sliding_window is a number',
    instead:
      'where sliding_window is null its layers are those of Llama: write "architectures": ["LlamaForCausalLM"] and "model_type": "llama" into a copy of its config.json',
  },
  {
    is: /^Gemma/,
    needs: 'GELU in the feed-forward part, scaled embeddings and norms with weights around 1',
    instead: ELSEWHERE,
  },
  {
    is: /^Phi3/,
    needs:
      'projections of queries, keys, values and of the feed-forward part that are stored as one (qkv_proj, gate_up_proj)',
    instead: `split them into the layout of Llama, if its positions are not stretched (rope_scaling null); ${ELSEWHERE}`,
  },
  {
    is: /^(GPT|Opt|OPT|Bloom|Falcon|Phi|StableLm|Starcoder|CodeGen|MPT)/,
    needs: 'LayerNorm, other positions or another feed-forward part than that of Llama',
    instead: ELSEWHERE,
  },
];

const LIST = ARCHITECTURES.join(', ');

/** Why an architecture cannot be run, and what would run it or can be taken instead. */
export function unknownArchitecture(named: string, modelType: string): GradusError {
  const foreign = FOREIGN.find(({ is }) => is.test(named) || is.test(modelType));
  let why = `its layers are not known. ${LIST} can be run: where its layers are those of one of them, with the same names of weights, write that one into a copy of its config.json; ${ELSEWHERE}`;
  if (foreign) why = `it needs ${foreign.needs}. ${LIST} can be run; ${foreign.instead}`;
  if ((ARCHITECTURES as readonly string[]).includes(named))
    why = 'the two are of different models: take the config.json that was saved with the weights';
  return new GradusError(
    'store',
    'unsupported-model',
    `config.json: architecture ${named} (model_type ${modelType}) cannot be run here: ${why}`,
  );
}
