'use strict'

// Enforces the structure in docs/architecture.md: which part may import which, the lines of code per part,
// and the only modules that may touch V8's and Node's singletons.

const fs = require('node:fs')
const path = require('node:path')
const acorn = require('acorn')
const walk = require('acorn-walk')
const test = require('ava')
const { root } = require('../helpers/run')

// Lines of code, without comments, of each part.
const maxLines = {
  report: 12872,
  core: 4371,
  spans: 2522,
  stacks: 2868,
  '.': 2336,
  handles: 2550,
  requests: 1127,
  ask: 1818,
  top: 1492,
  metrics: 218,
  incident: 808,
  cli: 1592,
  sinks: 1210,
  format: 1016,
  profile: 714,
  blocked: 439,
  attribution: 1099,
  passing: 712,
  runners: 461,
  intercept: 410,
  encoding: 625,
  hooks: 176,
}

// What each part may require of others, when it is loaded or in a function. Small files at the top of lib/
// that require nothing but each other, anybody may.
const common = ['core/run-log-words.js', 'errors.js', 'files.js', 'group-by.js', 'kill.js', 'listeners.js', 'objects.js', 'option-types.js', 'options.js', 'own-thread.js', 'path-names.js', 'platform.js',
  'reasons.js', 'box-option.js', 'record/block.js', 'record/box-layout.js', 'record/growth-text.js', 'settings.js', 'standard-error.js', 'subsystems.js', 'text.js', 'warnings.js', 'wrap.js']
/** @type {Record<string, string[]>} */
const required = {
  'api.js': [
    'attribution/', 'blocked/', 'core/', 'doctor.js', 'format/', 'handles/', 'hooks/', 'intercept/',
    'metrics/', 'node-objects.js', 'record/', 'spans/', 'stacks/', 'stats.js', 'tracer.js'
  ],
  'ask/': [
    'ask/protocol.js', 'blocked/', 'core/', 'format/', 'handles/', 'metrics/', 'metrics/openmetrics.js', 'node-objects.js',
    'record/', 'stacks/', 'top/', 'tracer.js'
  ],
  'ask/inspected.js': ['start.js'],
  'attribution/': ['core/', 'format/', 'stacks/'],
  'blocked/': ['core/', 'format/', 'stacks/'],
  'core/': ['node-objects.js', 'stacks/'],
  'doctor.js': ['format/', 'stacks/'],
  'format/': ['attribution/', 'core/', 'stacks/'],
  'handles/': ['attribution/', 'core/', 'format/', 'intercept/', 'node-objects.js', 'spans/', 'stacks/'],
  'hooks/': ['core/', 'stacks/'],
  'intercept/': ['core/', 'node-objects.js', 'requests/', 'stacks/'],
  'leak-watch.js': ['core/', 'format/', 'node-objects.js', 'shared.js'],
  'metrics/': ['core/', 'handles/', 'requests/', 'spans/', 'top/', 'top/buckets.js'],
  'options.js': ['node-objects.js', 'sinks/'],
  'passing/': ['core/', 'node-objects.js', 'requests/', 'stacks/'],
  'profile/': ['core/', 'format/', 'record/', 'requests/', 'stacks/'],
  'profile/preload.js': ['core/', 'shared.js'],
  'register.js': ['passing/', 'start.js'],
  'record/box-files.js': ['stacks/'],
  'record/': [
    'blocked/', 'core/', 'encoding/', 'format/', 'handles/', 'node-objects.js', 'passing/', 'record/box-files.js',
    'report/path/', 'requests/', 'sinks/', 'spans/', 'stacks/'
  ],
  'requests/': ['core/', 'handles/', 'node-objects.js', 'stacks/'],
  'runners/': ['core/', 'format/', 'handles/', 'register.js', 'stacks/', 'start.js'],
  'shared.js': ['api.js', 'ask/', 'runners/', 'tracer.js'],
  'sinks/': ['core/', 'encoding/'],
  'spans/': [
    'attribution/', 'blocked/', 'core/', 'encoding/', 'format/', 'node-objects.js', 'passing/', 'record/', 'requests/', 'sinks/', 'stacks/'
  ],
  'stacks/': ['core/', 'passing/'],
  'start.js': ['shared.js'],
  'stats.js': ['core/', 'format/', 'record/', 'spans/', 'stacks/'],
  'top/': ['ask/', 'blocked/', 'core/', 'handles/', 'node-objects.js', 'requests/', 'spans/', 'top/buckets.js'],
  'tracer.js': [
    'ask/', 'attribution/', 'blocked/', 'core/', 'handles/', 'node-objects.js', 'passing/', 'profile/', 'record/', 'requests/', 'spans/',
    'stacks/'
  ]
}

// The half that reads files of spans, in a process of its own: report/, beside lib/. It shares group-by.js,
// path-names.js, text.js and the words of the wait-for graph with the other, which loads nothing of it.
const offline = [
  { 'report/path/': ['core/run-log-words.js', 'encoding/', 'group-by.js', 'subsystems.js'] },
  { 'report/read/': ['core/run-log-words.js', 'encoding/', 'group-by.js', 'record/block.js', 'record/box-files.js', 'record/box-layout.js', 'record/growth-text.js', 'report/path/', 'text.js'] },
  { 'report/aggregate/': ['format/', 'group-by.js', 'path-names.js', 'report/path/', 'report/read/', 'text.js'] },
  { 'report/render/': ['report/aggregate/', 'report/read/', 'format/', 'text.js'] }
]
// The command line stands on either half. Of what asks a running process its end is beside the other one.
const commandEnds = {
  'incident/': ['command.js', 'findings.js', 'observation.js', 'text.js', 'until.js'],
  'ask/': ['inspector.js', 'port-lock.js', 'processes.js', 'shapes.js', 'system.js', 'threads.js'],
  'top/': ['boxes.js', 'command.js', 'lines.js', 'model.js', 'screen.js', 'watched.js']
}
const commands = {
  'cli/': ['ask/protocol.js', 'errors.js', 'files.js', 'format/', 'group-by.js', 'text.js', 'leak-watch.js', 'options.js', 'path-names.js', 'platform.js', 'metrics/openmetrics.js', 'profile/preload.js', 'record/box-files.js', 'top/buckets.js',
    'report/aggregate/', 'report/read/', 'report/render/']
}

// Written by who has it alone; the others may read.
const owners = [
  { what: /\bcreateHook\(/, files: ['core/installer.js', 'leak-watch.js'] },
  {
    what: /\b(?:prepareStackTrace|stackTraceLimit) = |\w = '(?:prepareStackTrace|stackTraceLimit)'|(?:define|delete)Property\(\w+, '(?:prepareStackTrace|stackTraceLimit)'/,
    files: ['stacks/error-slots.js']
  },
  { what: /\bdlopen\(/, files: ['stacks/binding.js'] },
  { what: /require\('node:diagnostics_channel'\)/, files: ['own-thread.js', 'requests/channels.js', 'sinks/otlp-client.js'] }
]

/** Names below lib/ without it, those of the offline half as report/ and so on. */
const files = ['lib', 'report'].flatMap((top) => /** @type {string[]} */ (fs.readdirSync(path.join(root, top), { recursive: true }))
  .map((name) => path.join(top, name).replaceAll(path.sep, '/').replace(/^lib\//, '')).filter((name) => name.endsWith('.js'))).sort()
const pathOf = (/** @type {string} */ name) => name.startsWith('report/') ? name : `lib/${name}`
const sources = new Map(files.map((name) => {
  const text = fs.readFileSync(path.join(root, pathOf(name)), 'utf8')
  const sourceType = name.includes('/client/') ? 'module' : 'script'
  return [name, { text, tree: acorn.parse(text, { ecmaVersion: 'latest', sourceType, allowHashBang: true, locations: true }) }]
}))

const ownParts = ['core/run-log-words.js', 'record/block.js', 'record/box-files.js', 'record/box-layout.js', 'record/growth-text.js', 'ask/inspected.js', 'ask/protocol.js', 'metrics/openmetrics.js', 'profile/preload.js', 'top/buckets.js']

/**
 * The part that a file belongs to: its directory, of report/ the one below, or the file itself.
 * @param {string} name
 */
function partOf (name) {
  if (ownParts.includes(name)) return name
  for (const [directory, names] of Object.entries(commandEnds)) {
    if (names.some((other) => `${directory}${other}` === name)) return 'cli/'
  }
  const [first, second, third] = name.split('/')
  if (second === undefined) return first
  return first === 'report' && third !== undefined ? `report/${second}/` : `${first}/`
}

/**
 * Lists what a file requires of lib and report.
 * @param {string} name
 * @returns {Array<{ target: string, isLazy: boolean }>}
 */
function requiredBy (name) {
  const { tree } = /** @type {NonNullable<ReturnType<typeof sources.get>>} */ (sources.get(name))
  /** @type {Array<{ target: string, isLazy: boolean }>} */
  const required = []
  walk.fullAncestor(tree, (node, _, ancestors) => {
    const { callee, arguments: args } = /** @type {any} */ (node)
    if (node.type !== 'CallExpression' || callee.name !== 'require' || !args[0]?.value?.startsWith?.('.')) return
    const target = path.posix.join(path.posix.dirname(pathOf(name)), args[0].value).replace(/^lib\//, '')
    const file = [target, `${target}.js`, `${target}/index.js`].find((candidate) => sources.has(candidate))
    if (file !== undefined) required.push({ target: file, isLazy: ancestors.some(({ type }) => /Function/.test(type)) })
  })
  return required
}

test('each part requires only what its line allows', (t) => {
  /** @type {string[]} */
  const wrong = []
  for (const name of files) {
    const part = partOf(name)
    if (part === 'cli/' || part === 'start/' || part.startsWith('report/')) continue
    for (const { target } of requiredBy(name)) {
      const other = partOf(target)
      const isAllowed = other === part || common.includes(other) || (required[part] ?? []).includes(other)
      if (!isAllowed) wrong.push(`${name} requires ${target}`)
    }
  }
  t.deepEqual(wrong, [])
})

test('the offline half requires only parts below it', (t) => {
  const list = Object.assign({}, ...offline)
  const wrong = files.filter((name) => list[partOf(name)] !== undefined).flatMap((name) => requiredBy(name)
    .filter(({ target }) => partOf(target) !== partOf(name) && !list[partOf(name)].includes(partOf(target)))
    .map(({ target }) => `${name} requires ${target}`))
  t.deepEqual(wrong, [])
})

test('no part has more lines of code than its line allows', (t) => {
  /** @type {Record<string, number>} */
  const lines = {}
  for (const name of files) {
    const part = path.posix.dirname(name).split('/')[0]
    lines[part] = (lines[part] ?? 0) + withoutComments(name).split('\n').filter((line) => line.trim() !== '').length
  }
  for (const [part, max] of Object.entries(maxLines)) t.true(lines[part] <= max, `${part} has ${lines[part]}`)
})

test('the command line requires only commands, reports and the public interface', (t) => {
  const wrong = files.filter((name) => partOf(name) === 'cli/').flatMap((name) => requiredBy(name)
    .map(({ target }) => partOf(target)).filter((part) => part !== 'cli/' && !commands['cli/'].includes(part)))
  t.deepEqual(wrong, [])
})

test('files require each other in no cycle at load time', (t) => {
  const graph = new Map(files.map((name) => {
    return [name, new Set(requiredBy(name).filter(({ isLazy }) => !isLazy).map(({ target }) => target))]
  }))
  t.deepEqual(circleIn(graph), [])
})

/** Finds one circle. @param {Map<string, Set<string>>} graph @returns {string[]} empty if there is none */
function circleIn (graph) {
  /** @type {Set<string>} */
  const done = new Set()
  /** @param {string} name @param {string[]} trail @returns {string[]} */
  function visit (name, trail) {
    if (trail.includes(name)) return [...trail.slice(trail.indexOf(name)), name]
    if (done.has(name)) return []
    for (const next of graph.get(name) ?? []) {
      const circle = visit(next, [...trail, name])
      if (circle.length > 0) return circle
    }
    done.add(name)
    return []
  }
  for (const name of graph.keys()) {
    const circle = visit(name, [])
    if (circle.length > 0) return circle
  }
  return []
}

test('each singleton of a process has one owner', (t) => {
  for (const { what, files: owning } of owners) {
    const users = files.filter((name) => what.test(withoutComments(name)))
    t.deepEqual(users.filter((name) => !owning.includes(name)), [], String(what))
    t.true(users.length > 0, `no file matches ${what}`)
  }
})

/** @param {string} name @returns {string} the source, comments blanked */
function withoutComments (name) {
  let { text } = /** @type {NonNullable<ReturnType<typeof sources.get>>} */ (sources.get(name))
  acorn.parse(text, {
    ecmaVersion: 'latest',
    sourceType: name.includes('/client/') ? 'module' : 'script',
    allowHashBang: true,
    onComment (isBlock, content, start, end) {
      text = text.slice(0, start) + ' '.repeat(end - start) + text.slice(end)
    }
  })
  return text
}
