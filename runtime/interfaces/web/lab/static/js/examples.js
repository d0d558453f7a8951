// Example requests. `checked` means that the example needs no judge, so it is suitable for a model that can't judge.

export const EXAMPLES = [
  {
    name: "Quantum computing",
    request: {
      instruct: "Explain quantum computing",
      resp_format: "A 3-paragraph explanation suitable for high school students",
      eval_crit: "Must use analogies, avoid jargon, and include a practical example",
      iter_max: 5, score_threshold: 0.85, attempts: 1, judges: 1, checks: [],
    },
  },
  {
    name: "A sentence, with checks",
    checked: true,
    request: {
      instruct: "Write one sentence about the sea.",
      resp_format: "One sentence of at most 20 words.",
      eval_crit: "",
      iter_max: 5, score_threshold: 1, attempts: 1, judges: 0,
      checks: ["words:5..20", "contains:sea", "lines:1..1", "not-regex:(?i)^(sure|here)"],
    },
  },
  {
    name: "A product text, with checks and a judge",
    request: {
      instruct: "Describe a travel mug of steel for a web shop",
      resp_format: "Two short paragraphs",
      eval_crit: "Says what is special about it, names one use, promises nothing that can't be known",
      iter_max: 4, score_threshold: 0.8, attempts: 2, judges: 1,
      checks: ["words:40..120", "paragraphs:2", "not-regex:(?i)\\b(best|perfect|ultimate)\\b"],
    },
  },
];
