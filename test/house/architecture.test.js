'use strict'

// Guards the structure that docs/architecture.md describes: which part may load which, who alone may touch
// what V8 and Node have only one of, and the size of files and functions. What is above a limit for a reason
// is in a list here; a list names nothing that is no longer above it.

const fs = require('node:fs')
const path = require('node:path')
const acorn = require('acorn')
const walk = require('acorn-walk')
const test = require('ava')
const { root } = require('../helpers/run')

const MAX_LINES = 320
const MAX_FUNCTION_LINES = 120
const MAX_VAGUE = 0.003

// Each part loads, while it is loaded, only itself and what its line names. In a function it may require
// anything of the lines above its own as well, never of a line below.
// What is in force, settings.js, anything above it may read.
const floors = [
  { 'ask/protocol.js': [], 'files.js': [], 'listeners.js': [], 'buckets.js': [], 'objects.js': [], 'option-types.js': [], 'path-names.js': [], 'wrap.js': [], 'reasons.js': [], 'standard-error.js': [], 'text.js': [], 'encoding/': [] },
  { 'warnings.js': ['listeners.js'] },
  { 'errors.js': ['text.js', 'warnings.js'], 'options.js': ['option-types.js', 'warnings.js', 'context/', 'errors.js', 'node-objects.js', 'sinks/'] },
  { 'settings.js': ['options.js'] },
  { 'context/': ['objects.js', 'errors.js'] },
  { 'node-objects.js': ['context/', 'objects.js'] },
  { 'stacks/': ['context/', 'files.js', 'wrap.js'] },
  { 'format/': ['context/', 'files.js', 'stacks/', 'text.js'] },
  { 'attribution/': ['context/', 'stacks/', 'objects.js'] },
  {
    'handles/': ['context/', 'errors.js', 'format/', 'node-objects.js', 'objects.js', 'text.js'],
    'hooks/': ['context/', 'errors.js', 'files.js', 'node-objects.js', 'objects.js', 'stacks/', 'wrap.js'],
    'requests/': ['context/', 'node-objects.js', 'objects.js', 'standard-error.js', 'wrap.js']
  },
  {
    'sinks/': ['context/', 'encoding/', 'errors.js', 'files.js', 'hooks/', 'warnings.js'],
    'blocked/': ['context/', 'format/', 'listeners.js', 'stacks/', 'warnings.js'],
    'intercept/': ['context/', 'errors.js', 'node-objects.js', 'objects.js', 'text.js', 'warnings.js', 'wrap.js']
  },
  {
    'profile/': ['context/', 'errors.js', 'stacks/'],
    'spans/': ['context/', 'encoding/', 'hooks/', 'listeners.js', 'node-objects.js', 'objects.js', 'path-names.js', 'stacks/', 'text.js', 'warnings.js', 'wrap.js']
  },
  { 'doctor-problems.js': [] },
  { 'doctor.js': ['doctor-problems.js', 'format/', 'objects.js', 'stacks/', 'warnings.js'] },
  {
    'tracer/': ['attribution/', 'context/', 'errors.js', 'format/', 'handles/', 'hooks/', 'listeners.js', 'node-objects.js',
      'objects.js', 'requests/', 'reasons.js', 'stacks/', 'warnings.js']
  },
  {
    'top/': ['ask/', 'buckets.js', 'context/', 'handles/', 'listeners.js', 'node-objects.js', 'objects.js', 'path-names.js', 'text.js']
  },
  {
    'ask/': ['ask/protocol.js', 'context/', 'files.js', 'format/', 'node-objects.js', 'options.js', 'standard-error.js', 'warnings.js']
  },
  { 'tracer.js': ['context/', 'hooks/', 'listeners.js', 'node-objects.js', 'options.js', 'tracer/', 'warnings.js'] },
  { 'api.js': ['context/', 'errors.js', 'hooks/', 'node-objects.js', 'options.js', 'tracer/'] },
  {
    'runners/': ['context/', 'format/', 'handles/', 'register.js', 'stacks/', 'start.js', 'text.js', 'warnings.js']
  },
  { 'shared.js': ['tracer.js'] },
  { 'leak-watch.js': ['context/', 'warnings.js'] },
  { 'start.js': [] },
  { 'profile/preload.js': ['context/', 'warnings.js'] },
  { 'register.js': ['start.js'], 'ask/inspected.js': ['start.js'] }
]

// The half that reads files of spans, in a process of its own: report/, beside lib/. It shares text.js and
// path-names.js with the other, which loads nothing of it.
const offline = [
  { 'report/read/': ['text.js'] },
  { 'report/aggregate/': ['path-names.js', 'report/read/', 'text.js'] },
  { 'report/render/': ['report/aggregate/', 'report/read/', 'text.js'] }
]
// The command line stands on either half. Of what asks a running process its end is beside the other one.
const commandEnds = {
  'ask/': ['inspector.js', 'processes.js', 'signal.js', 'sockets.js', 'system.js', 'target.js', 'thread.js'],
  'top/': ['command.js', 'history.js', 'lines.js', 'model.js', 'panes.js', 'screen.js', 'terminal.js', 'watched.js']
}
const commands = {
  'cli/': ['ask/protocol.js', 'buckets.js', 'errors.js', 'files.js', 'format/', 'text.js', 'leak-watch.js', 'options.js', 'profile/preload.js',
    'report/aggregate/', 'report/read/', 'report/render/']
}

// Written by who has it alone; the others may read.
const owners = [
  { what: /\bcreateHook\(/, files: ['hooks/installer.js', 'leak-watch.js'] },
  { what: /\bprepareStackTrace = |(?:define|delete)Property\(\w+, 'prepareStackTrace'/, files: ['stacks/formatter-slot.js'] },
  { what: /\bstackTraceLimit = |(?:define|delete)Property\(\w+, 'stackTraceLimit'/, files: ['stacks/trace-limit.js'] },
  { what: /\bdlopen\(/, files: ['stacks/binding.js'] },
  { what: /require\('node:diagnostics_channel'\)/, files: ['requests/channels.js', 'sinks/otlp-thread.js'] }
]

/** Files past MAX_LINES, each with its reason. @type {Record<string, string>} */
const longFiles = {
  'format/handles.js': 'one report, line by line',
  'hooks/events.js': 'the hot path, read on one page'
}

/** Functions past MAX_FUNCTION_LINES, each with its reason. @type {Record<string, string>} */
const longFunctions = {
  'hooks/events.js createEvents': 'the hot path, read on one page; its functions share one closure, so that V8 has addresses in the code',
}

const vague = new Set(('one found given made what how known told at by left all who shown seen rest look tell ask over is ' +
  'of same plain most least inside ours said takes met').split(' '))

/** Names below lib/ without it, those of the offline half as report/ and so on. */
const files = ['lib', 'report'].flatMap((top) => /** @type {string[]} */ (fs.readdirSync(path.join(root, top), { recursive: true }))
  .map((name) => path.join(top, name).replaceAll(path.sep, '/').replace(/^lib\//, '')).filter((name) => name.endsWith('.js'))).sort()
const pathOf = (/** @type {string} */ name) => name.startsWith('report/') ? name : `lib/${name}`
const sources = new Map(files.map((name) => {
  const text = fs.readFileSync(path.join(root, pathOf(name)), 'utf8')
  const sourceType = name.includes('/client/') ? 'module' : 'script'
  return [name, { text, tree: acorn.parse(text, { ecmaVersion: 'latest', sourceType, allowHashBang: true, locations: true }) }]
}))

const ownParts = ['ask/inspected.js', 'ask/protocol.js', 'profile/preload.js']

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

test('every part of lib and report is on a floor', (t) => {
  const parts = new Set([...floors, ...offline, commands].flatMap((floor) => Object.keys(floor)))
  t.deepEqual([...new Set(files.map(partOf))].filter((part) => !parts.has(part) && part !== 'start/'), [])
})

test('a part loads what is below it, as its line says', (t) => {
  /** @type {string[]} */
  const wrong = []
  for (const [half, list] of /** @type {const} */ ([['observed', floors], ['offline', offline]])) {
    /** @type {Map<string, number>} */
    const heights = new Map(list.flatMap((floor, height) => Object.keys(floor).map((part) => [part, height])))
    for (const name of files) {
      const part = partOf(name)
      const height = heights.get(part)
      if (height === undefined) continue
      const allowed = [...Object.assign({}, ...list)[part], ...(height > Number(heights.get('settings.js')) ? ['settings.js'] : [])]
      for (const { target, isLazy } of requiredBy(name)) {
        const other = partOf(target)
        const isBelow = isLazy && half === 'observed' && Number(heights.get(other)) < height
        if (other !== part && !allowed.includes(other) && !isBelow) wrong.push(`${name} requires ${target}`)
      }
    }
  }
  // What is made when it is first asked for, from above: start.js loads the public face, shared.js the API.
  t.deepEqual(wrong.filter((line) => !/^(start|shared)\.js requires (shared|options|warnings|api)\.js$/.test(line)), [])
})

test('the command line requires commands, reports and the public face', (t) => {
  const wrong = files.filter((name) => partOf(name) === 'cli/').flatMap((name) => requiredBy(name)
    .map(({ target }) => partOf(target)).filter((part) => part !== 'cli/' && !commands['cli/'].includes(part)))
  t.deepEqual(wrong, [])
})

test('no files and no parts require each other in a circle', (t) => {
  for (const nameOf of [(/** @type {string} */ name) => name, partOf]) {
    /** @type {Map<string, Set<string>>} */
    const graph = new Map()
    for (const name of files) {
      const from = nameOf(name)
      if (!graph.has(from)) graph.set(from, new Set())
      for (const { target, isLazy } of requiredBy(name)) {
        if (!isLazy && nameOf(target) !== from) graph.get(from)?.add(nameOf(target))
      }
    }
    t.deepEqual(circleIn(graph), [])
  }
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

test('what there is one of in a process has one owner', (t) => {
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

test(`no file has more than ${MAX_LINES} lines without a reason`, (t) => {
  const long = [...sources].filter(([, { text }]) => text.trimEnd().split('\n').length > MAX_LINES).map(([name]) => name)
  t.deepEqual(long, Object.keys(longFiles).sort())
})

test(`no function has more than ${MAX_FUNCTION_LINES} lines without a reason`, (t) => {
  /** @type {string[]} */
  const long = []
  for (const [name, { tree }] of sources) {
    walk.full(tree, (node) => {
      const { loc, id } = /** @type {any} */ (node)
      if (!/Function/.test(node.type) || loc.end.line - loc.start.line < MAX_FUNCTION_LINES) return
      long.push(`${name} ${id?.name ?? 'anonymous'}`)
    })
  }
  t.deepEqual(long.sort(), Object.keys(longFunctions).sort())
})

test(`at most ${MAX_VAGUE * 100} % of declared names are vague`, (t) => {
  let count = 0
  /** @type {string[]} */
  const found = []
  for (const [name, { tree }] of sources) {
    /** @param {any} pattern */
    const declare = (pattern) => {
      if (!pattern) return
      if (pattern.type === 'Identifier') {
        count++
        if (vague.has(pattern.name)) found.push(`${name}:${pattern.loc.start.line} ${pattern.name}`)
      }
      for (const property of pattern.properties ?? []) declare(property.value ?? property.argument)
      for (const element of pattern.elements ?? []) declare(element)
      if (pattern.type === 'AssignmentPattern') declare(pattern.left)
      if (pattern.type === 'RestElement') declare(pattern.argument)
    }
    walk.full(tree, (node) => {
      const { id, params } = /** @type {any} */ (node)
      if (node.type === 'VariableDeclarator' || node.type === 'FunctionDeclaration' || node.type === 'ClassDeclaration') declare(id)
      for (const parameter of params ?? []) declare(parameter)
    })
  }
  t.true(found.length / count <= MAX_VAGUE, `${found.length} of ${count}:\n${found.join('\n')}`)
})
