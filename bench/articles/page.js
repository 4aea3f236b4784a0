'use strict'

// Formats the saved figures of the articles' claims as the page docs/articles.md, and as a comparison of two
// runs. Data in, text out.

const { median } = require('../median')

/**
 * @typedef {'off' | 'on'} State of tracing
 * @typedef {'as said' | 'no difference' | 'other way round'} Outcome b costs more than a; about the same; a
 *   costs more than b
 *
 * @typedef {object} Claim claim of an article, measured in one round
 * @property {string} id
 * @property {string} article title, author, year
 * @property {string} said
 * @property {number | null} saidRatio b ÷ a in the article; null if it gave no figure
 * @property {boolean} [saidSame] the article claims that there is hardly any difference
 * @property {string} a
 * @property {string} b
 * @property {string} unit of a and b
 * @property {string} means meaning of b ÷ a
 * @property {Partial<Record<Outcome, string>>} why explanation of today's result, by outcome
 * @property {{ a: number, b: number }} off
 * @property {{ a: number, b: number }} on
 *
 * @typedef {object} Table figures that are not ratios
 * @property {string} title
 * @property {string[]} heading
 * @property {string[][]} rows
 *
 * @typedef {object} Example
 * @property {string} name its directory
 * @property {string} title from the head of its file
 * @property {Claim[][]} rounds claims of each round
 * @property {Table[]} tables of the last round
 *
 * @typedef {object} Figures
 * @property {string} date
 * @property {string} node version
 * @property {boolean} quick
 * @property {ReturnType<typeof import('../machine').describe>} machine
 * @property {Example[]} examples
 *
 * @typedef {object} Measured
 * @property {number} ratio median over the rounds
 * @property {[number, number]} spread range in which the ratio of a second run is expected
 */

const MIN_SPREAD = Math.log(1.1) // minimum uncertainty of any ratio
// Multiple of the distance of the farthest round: rounds of one run differ less than runs do. A factor of two
// contained 53 of 56 ratios of another run, a factor of four all.
const WIDER = 4
const MANY = 5 // rounds; with more than this, one may be ignored as an outlier
const APART = 0.05 // minimum distance from 1 to count as a difference

/** @param {number[]} ratios @returns {Measured} */
function measured (ratios) {
  const ratio = median(ratios)
  const distances = ratios.map((value) => Math.abs(Math.log(value / ratio))).sort((a, b) => b - a)
  const reach = Math.exp(Math.max(MIN_SPREAD, distances[ratios.length < MANY ? 0 : 1] * WIDER))
  return { ratio, spread: [ratio / reach, ratio * reach] }
}

/**
 * Decides by the spread or, if that contains 1, by the rounds.
 * @param {number[]} ratios one per round
 * @returns {Outcome}
 */
function outcomeOf (ratios) {
  const { ratio, spread: [low, high] } = measured(ratios)
  if (Math.abs(ratio - 1) < APART) return 'no difference'
  if (low > 1 || ratios.every((value) => value > 1)) return 'as said'
  return high < 1 || ratios.every((value) => value < 1) ? 'other way round' : 'no difference'
}

/**
 * Returns the verdict on the article's claim; "probably" if another run may have another outcome.
 * @param {Claim} claim @param {Outcome} outcome @param {Measured} measured
 */
function verdictOf ({ saidSame = false, saidRatio, b }, outcome, { ratio, spread: [low, high] }) {
  /** @param {boolean} isSure @param {string} verdict */
  const surely = (isSure, verdict) => isSure ? verdict : `probably ${verdict}`
  if (outcome === 'no difference') return saidSame ? 'as said' : outcome
  const apart = low > 1 || high < 1
  if (saidSame) return surely(apart, `${outcome === 'as said' ? 'more' : 'less'} with ${b}`)
  if (outcome === 'other way round') return surely(apart, outcome)
  const half = saidRatio === null ? 1 : 1 + (saidRatio - 1) / 2
  return ratio < half ? surely(high < half, 'less than said') : surely(low > half, 'as said')
}

/** Summarizes the claims of an example over all of its rounds. @param {Example} example */
function claimsOf ({ rounds }) {
  return rounds[0].map((claim, i) => {
    const values = rounds.map((round) => round[i])
    const ratios = (/** @type {State} */ state) => values.map((round) => round[state].b / round[state].a)
    const summarize = (/** @type {State} */ state) => ({
      a: median(values.map((round) => round[state].a)),
      b: median(values.map((round) => round[state].b)),
      ...measured(ratios(state))
    })
    const outcome = outcomeOf(ratios('off'))
    const off = summarize('off')
    return { claim, off, on: summarize('on'), outcome, verdict: verdictOf(claim, outcome, off) }
  })
}

/** Formats a number with three significant digits. @param {number} value */
function figure (value) {
  if (value >= 9999.5) return value.toPrecision(3).replace(/e\+?(\d+)/, ' × 10^$1')
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** @param {Measured} measured */
const formatRatio = ({ ratio, spread }) => `${figure(ratio)} (${spread.map(figure).join('–')})`

/** @param {string[][]} rows the first is the heading */
function markdown ([heading, ...rows]) {
  const escaped = (/** @type {string} */ cell) => cell.replaceAll('|', '\\|')
  const line = (/** @type {string[]} */ cells) => `| ${cells.map(escaped).join(' | ')} |`
  const alignments = heading.map((name, column) => column === 0 || name === 'verdict' ? '---' : '---:')
  return [line(heading), line(alignments), ...rows.map(line)].join('\n')
}

/** @param {Claim} claim */
const formatSaid = ({ saidRatio, saidSame = false }) => {
  if (saidRatio !== null) return figure(saidRatio)
  return saidSame ? '1' : '–'
}

/** Explains an outcome. @param {ReturnType<typeof claimsOf>[number]} entry */
function reason ({ claim, outcome, verdict }) {
  const why = claim.why[outcome] ?? 'No reason is known for that outcome.'
  return `- **${claim.id}**, ${verdict} (${claim.article}). ${why}`
}

/** Whether an article's figure no longer holds. @param {ReturnType<typeof claimsOf>[number]} entry */
function isRefuted ({ claim, verdict }) {
  return claim.saidRatio !== null && verdict !== 'as said' && !verdict.startsWith('probably')
}

/** Joins the lines of a paragraph. @param {string} text */
const paragraph = (text) => text.trim().replace(/\s*\n\s*/g, ' ')

const EXPLANATION = paragraph(`
  Each ratio is the median over the rounds. *As said*: the first of the two costs more. *Less than said*: by
  less than half of what the article found. *No difference*: within 5 % of 1, or the rounds disagree.
  *Probably*: another run may decide differently. Verdicts apply to the runs without tracing.`)

/** Introduces the page. @param {Figures} figures */
function introduction ({ date, node, quick, machine, examples }) {
  const counts = examples.map((example) => example.rounds.length)
  const [min, max] = [Math.min(...counts), Math.max(...counts)]
  const rounds = `${min === max ? '' : `${min} to `}${max} round${max === 1 ? '' : 's'}`
  const warning = quick ? '. **A quick run: it shows that everything works, the figures are rough**' : ''
  return [
    paragraph(`
      longstack grew out of old articles about Node. The numbered [examples](../examples) show what it reports
      about the articles' programs. \`bench/articles\` measures the articles' claims again, bare
      and traced.`),
    paragraph(`
      Measured on ${date.slice(0, 10)} with Node ${node} on ${machine.cpu}, ${machine.processors} CPUs,
      ${machine.system}, in ${rounds}${warning}. Results differ between versions of Node and machines.`)
  ]
}

/** @param {Figures} figures */
function page (figures) {
  const claims = figures.examples.flatMap(claimsOf)
  const rows = claims.map(({ claim, off, on, verdict }) => [
    `${claim.id}: ${claim.b} ÷ ${claim.a}`,
    formatSaid(claim),
    figure(off.ratio),
    figure(on.ratio),
    verdict
  ])
  return [
    '<!-- Generated by npm run articles. Do not edit. -->',
    '# Old claims about Node, measured again',
    ...introduction(figures),
    markdown([['ratio', 'then', 'bare', 'traced', 'verdict'], ...rows]),
    EXPLANATION,
    'Claims that no longer hold:',
    claims.filter(isRefuted).map(reason).join('\n'),
    '`npm run articles -- --check` measures again and prints the figures that disagree.'
  ].join('\n\n') + '\n'
}

/**
 * Whether a second run agrees with the first one within its spread.
 * @param {Figures} first
 * @param {Figures} second
 * @returns {Array<{ id: string, state: State, stated: Measured, ratio: number, agrees: boolean }>}
 */
function compared (first, second) {
  const entries = new Map(first.examples.flatMap(claimsOf).map((entry) => [entry.claim.id, entry]))
  return second.examples.flatMap(claimsOf).flatMap((entry) => {
    const before = entries.get(entry.claim.id)
    if (before === undefined) return []
    return (/** @type {State[]} */ (['off', 'on'])).map((state) => {
      const { ratio } = entry[state]
      const [low, high] = before[state].spread
      const agrees = ratio >= low && ratio <= high
      return { id: entry.claim.id, state, stated: before[state], ratio, agrees }
    })
  })
}

module.exports = { page, compared, measured, formatRatio, figure }
