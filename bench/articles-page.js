'use strict'

// The saved figures of the articles' claims as the page docs/articles.md, and as a comparison of two runs. Data in, text out.

const { median } = require('./median')

/**
 * @typedef {'off' | 'on'} State of tracing
 * @typedef {'as said' | 'no difference' | 'other way round'} Outcome b costs more than a; neither; a costs more than b
 *
 * @typedef {object} Claim what an example says of one claim, in one round
 * @property {string} id
 * @property {string} article title, author, year
 * @property {string} said
 * @property {number | null} saidRatio b ÷ a as the article had it; null where it gave no figure
 * @property {boolean} [saidSame] the article's claim is that there is hardly a difference
 * @property {string} a
 * @property {string} b
 * @property {string} unit of both
 * @property {string} means what b ÷ a says
 * @property {Partial<Record<Outcome, string>>} why it is so today, by outcome
 * @property {{ a: number, b: number }} off
 * @property {{ a: number, b: number }} on
 *
 * @typedef {object} Table figures that are no ratio
 * @property {string} title
 * @property {string[]} heading
 * @property {string[][]} rows
 *
 * @typedef {object} Example
 * @property {string} name its file, without `.js`
 * @property {string} title from the file's head
 * @property {Claim[][]} rounds the claims of each round
 * @property {Table[]} tables of the last round
 *
 * @typedef {object} Figures
 * @property {string} date
 * @property {string} node version
 * @property {boolean} quick
 * @property {ReturnType<typeof import('./machine').describe>} machine
 * @property {Example[]} examples
 *
 * @typedef {object} Measured
 * @property {number} ratio median over the rounds
 * @property {[number, number]} spread in which the ratio of a second run is expected
 */

const LEAST_SPREAD = Math.log(1.1) // no ratio of another run is known better than that
const WIDER = 4 // times the distance of the farthest round: rounds of one run are more alike than runs are; twice held 53 of 56 ratios of another run, four times all
const MANY = 5 // rounds, of which one may be left out as an outlier
const APART = 0.05 // from 1: less is no difference

/** @param {number[]} ratios @returns {Measured} */
function measured (ratios) {
  const ratio = median(ratios)
  const far = ratios.map((one) => Math.abs(Math.log(one / ratio))).sort((a, b) => b - a)
  const reach = Math.exp(Math.max(LEAST_SPREAD, far[ratios.length < MANY ? 0 : 1] * WIDER))
  return { ratio, spread: [ratio / reach, ratio * reach] }
}

/** What the stated spread says, and where it holds 1 the rounds. @param {number[]} ratios one a round @returns {Outcome} */
function outcomeOf (ratios) {
  const { ratio, spread: [least, most] } = measured(ratios)
  if (Math.abs(ratio - 1) < APART) return 'no difference'
  if (least > 1 || ratios.every((one) => one > 1)) return 'as said'
  return most < 1 || ratios.every((one) => one < 1) ? 'other way round' : 'no difference'
}

/**
 * What the outcome says of the article; "probably", where another run may say something else.
 * @param {Claim} claim @param {Outcome} outcome @param {Measured} measured
 */
function verdictOf ({ saidSame = false, saidRatio, b }, outcome, { ratio, spread: [least, most] }) {
  const surely = (/** @type {boolean} */ sure, /** @type {string} */ verdict) => sure ? verdict : `probably ${verdict}`
  if (outcome === 'no difference') return saidSame ? 'as said' : outcome
  const apart = least > 1 || most < 1
  if (saidSame) return surely(apart, `${outcome === 'as said' ? 'more' : 'less'} with ${b}`)
  if (outcome === 'other way round') return surely(apart, outcome)
  const half = saidRatio === null ? 1 : 1 + (saidRatio - 1) / 2
  return ratio < half ? surely(most < half, 'less than said') : surely(least > half, 'as said')
}

/** The claims of an example over all of its rounds. @param {Example} example */
function claimsOf ({ rounds }) {
  return rounds[0].map((claim, i) => {
    const all = rounds.map((round) => round[i])
    const ratios = (/** @type {State} */ state) => all.map((one) => one[state].b / one[state].a)
    const of = (/** @type {State} */ state) => ({
      a: median(all.map((one) => one[state].a)),
      b: median(all.map((one) => one[state].b)),
      ...measured(ratios(state))
    })
    const outcome = outcomeOf(ratios('off'))
    const off = of('off')
    return { claim, off, on: of('on'), outcome, verdict: verdictOf(claim, outcome, off) }
  })
}

/** Three digits that count. @param {number} value */
function figure (value) {
  if (value >= 9999.5) return value.toPrecision(3).replace(/e\+?(\d+)/, ' × 10^$1')
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2)
}

/** @param {Measured} measured */
const shown = ({ ratio, spread }) => `${figure(ratio)} (${spread.map(figure).join('–')})`

/** @param {string[][]} rows the first is the heading */
function markdown ([heading, ...rows]) {
  const line = (/** @type {string[]} */ cells) => `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
  return [line(heading), line(heading.map((name, column) => column === 0 || name === 'verdict' ? '---' : '---:')), ...rows.map(line)].join('\n')
}

/** @param {Claim} claim */
const then = ({ saidRatio, saidSame = false }) => saidRatio === null ? saidSame ? 'about 1' : 'no figure' : figure(saidRatio)

/** @param {ReturnType<typeof claimsOf>[number]} entry */
function section ({ claim, off, on, outcome, verdict }) {
  const why = claim.why[outcome] ?? 'No reason is known for that outcome.'
  return [
    `### ${claim.id}`,
    `${claim.article}: ${claim.said}`,
    markdown([
      [claim.unit, claim.a, claim.b, 'ratio (spread)'],
      ['the article', '', '', then(claim)],
      ['today', figure(off.a), figure(off.b), shown(off)],
      ['today, traced', figure(on.a), figure(on.b), shown(on)]
    ]),
    `The ratio is ${claim.means}. **${verdict[0].toUpperCase()}${verdict.slice(1)}**. ${why}`
  ].join('\n\n')
}

/** @param {Figures} figures */
function page ({ date, node, quick, machine, examples }) {
  const rows = examples.flatMap((example) => claimsOf(example).map(({ claim, off, on, verdict }) =>
    [`[${claim.id}](#${claim.id})`, `${claim.b} ÷ ${claim.a}`, then(claim), shown(off), shown(on), verdict]))
  const counts = examples.map((example) => example.rounds.length)
  const [fewest, most] = [Math.min(...counts), Math.max(...counts)]
  const rounds = `${fewest === most ? '' : `${fewest} to `}${most} round${most === 1 ? '' : 's'}`
  return [
    '<!-- Generated by npm run articles. Do not edit. -->',
    '# The articles, measured again',
    'longstack grew out of some old articles on Node\'s event loop, binary data, file serving, closures and HTTP streams. Their programs run today ' +
      'as the numbered [examples](../examples); here their claims are measured again, with tracing off and on.',
    `Measured on ${date.slice(0, 10)} with Node ${node} on ${machine.cpu}, ${machine.processors} processors, ${machine.system}, in ${rounds}` +
      `${quick ? '. **A quick run: it shows that everything works, the figures are rough**' : ''}. Traced means everything: full stacks, all types.`,
    'All of that holds for this Node and this machine. Other versions of Node differ, some ratios by much: net ÷ raw, http ÷ net, setTimeout ÷ nextTick, the medians of example 07. ' +
      '`npm run articles -- --node PATH --docs FOLDER` measures another one.',
    'A ratio is b ÷ a. a and b are measured in turns in each round; of each of the three the median over the rounds is shown. The median of the ratios need not be the ratio of the medians.',
    markdown([['claim', 'ratio', 'then', 'today (spread)', 'traced (spread)', 'verdict'], ...rows]),
    'The spread is where another run\'s ratio is expected: four times as far from the median as the farthest ' +
      `round (of ${MANY} or more, the farthest but one), at least 10 %. The verdict and its reason are about tracing off:`,
    [
      '- *as said*: b costs more than a;',
      '- *less than said*: it does, or hardly does, but what it costs more is less than half of what the article had;',
      '- *other way round*: b costs less than a;',
      '- *no difference*: the median is within 5 % of 1, or the spread holds 1 and the rounds do not agree whether b costs more;',
      '- *probably*, before one of them: the median says so, but the spread holds 1, or the half of what the article had: another run may say something else.'
    ].join('\n'),
    'Where the article saw hardly a difference, *as said* means that there is none, and *more with* or *less with* that there is one. ' +
      'An article measured another machine and a Node of its time: its figure is there for the direction and the size.',
    'The tables without a ratio, below the claims, are of the last round alone. Most rows were measured once, after those above them, often in the same process: ' +
      'they show orders of size, and need not agree with the claims.',
    ...examples.flatMap((example) => [
      `## ${example.title}`,
      `\`node examples/${example.name}.js\``,
      ...claimsOf(example).map(section),
      ...example.tables.flatMap(({ title, heading, rows }) => [`**${title}** (one round)`, markdown([heading, ...rows])])
    ]),
    '## How to repeat it',
    '```\nnpm run articles                 measures everything, writes this page\nnpm run articles -- --add        measures again and adds the rounds to those of this page\n' +
      'npm run articles -- --check      measures again and says what does not agree with this page\n' +
      'npm run articles -- --help\n```'
  ].join('\n\n') + '\n'
}

/**
 * Whether a second run agrees with a first one within its spread.
 * @param {Figures} first
 * @param {Figures} second
 * @returns {Array<{ id: string, state: State, stated: Measured, ratio: number, agrees: boolean }>}
 */
function compared (first, second) {
  const known = new Map(first.examples.flatMap(claimsOf).map((entry) => [entry.claim.id, entry]))
  return second.examples.flatMap(claimsOf).flatMap((entry) => {
    const before = known.get(entry.claim.id)
    if (before === undefined) return []
    return (/** @type {State[]} */ (['off', 'on'])).map((state) => {
      const { ratio } = entry[state]
      const [least, most] = before[state].spread
      return { id: entry.claim.id, state, stated: before[state], ratio, agrees: ratio >= least && ratio <= most }
    })
  })
}

module.exports = { page, compared, measured, shown, figure }
