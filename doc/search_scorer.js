// A page that answers stands before the glossary, where both have an entry of the searched word.
var Scorer = {
  score: ([docname, title, anchor, description, score]) => (docname === "glossary" ? score - 1 : score),
  // the rest as in Sphinx
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
