'use strict'

// Source maps that lie, are missing, loop or are huge: frames stay unmapped, with no crash or repeated reads.

const { execFileSync } = require('node:child_process')
const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const maps = require('../helpers/maps')
const { node, register, split } = require('../helpers/run')

const { code, map } = maps.compile()
const good = JSON.stringify(map)

/** Counts what is read of each file, and what is parsed; loaded before longstack. */
const counter = `
  const fs = require('node:fs')
  const path = require('node:path')
  const counts = {}
  for (const name of ['readFileSync', 'statSync', 'openSync', 'existsSync']) {
    const original = fs[name]
    fs[name] = function (file, ...rest) {
      if (typeof file === 'string' && file.startsWith(__dirname)) {
        const key = name + ' ' + path.basename(file)
        counts[key] = (counts[key] || 0) + 1
      }
      return original.call(this, file, ...rest)
    }
  }
  const { parse } = JSON
  JSON.parse = (...args) => {
    counts['JSON.parse'] = (counts['JSON.parse'] || 0) + 1
    return parse(...args)
  }
  process.on('exit', () => process.stdout.write('COUNTS' + JSON.stringify(counts)))
`

/** The fixture, ten times. */
const often = `${code.replace(/^start\(.*$/m, '')}
let left = 10
const again = (error) => { console.log(error.stack); if (--left > 0) start(again) }
start(again)
`

/**
 * Runs the fixture ten times with a map in whatever state.
 * @param {import('ava').ExecutionContext} t
 * @param {string} comment at the end of the code
 * @param {(folder: string) => void} [prepare]
 */
async function broken (t, comment, prepare = () => {}) {
  const folder = maps.folder({ 'program.js': often + comment, 'counter.js': counter })
  t.teardown(() => fs.rmSync(folder, { recursive: true, force: true }))
  prepare(folder)
  const { stdout, stderr, code } = await node(['-r', path.join(folder, 'counter.js'), '-r', register, path.join(folder, 'program.js')], { timeout: 30_000 })
  t.is(code, 0, stderr)
  t.is(stderr, '')
  const [text, counts] = stdout.split('COUNTS')
  return { stacks: text.split(/^(?=Error: )/m), counts: JSON.parse(counts), folder }
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {{ stacks: string[], counts: Record<string, number> }} result
 */
function unmappedOnce (t, { stacks, counts }) {
  t.is(stacks.length, 10)
  for (const stack of stacks) {
    const { head, hops } = split(stack)
    t.regex(head, /_onImmediate \(\S*program\.js:\d+:\d+\)/)
    t.true(hops.length >= 2, stack)
    t.regex(hops[0].frames, /at second \(\S*program\.js:\d+:\d+\)/)
  }
  readOnce(t, counts)
}

/**
 * Loading the program reads it once; mapping may read a file twice (to look, to map), never more. JSON.parse:
 * longstack's own three files as well,
 * and the map once more for a source that is not on disk.
 */
function readOnce (t, counts) {
  for (const [what, count] of Object.entries(counts)) {
    const limit = what === 'JSON.parse' ? 5 : what.endsWith('program.js') ? 3 : 2
    t.true(count <= limit, `${what} × ${count}`)
  }
}

const external = '//# sourceMappingURL=program.js.map\n'
/** @param {string | Buffer} content */
const put = (content) => (/** @type {string} */ folder) => fs.writeFileSync(path.join(folder, 'program.js.map'), content)

test('an intact map is read once', async (t) => {
  const { stacks, counts } = await broken(t, external, put(good))
  t.true(stacks.every((stack) => split(stack).hops[0].frames.includes('app.ts:22:14')), stacks[0])
  readOnce(t, counts)
})

for (const [name, content] of Object.entries({
  'no JSON': 'This is no map.',
  truncated: good.slice(0, good.length / 2),
  empty: '',
  'of another version': JSON.stringify({ ...map, version: 99 }),
  'without sources': JSON.stringify({ version: 3, mappings: map.mappings }),
  'with mappings that are no VLQ': JSON.stringify({ ...map, mappings: '!!!!;****;ééé' }),
  'with sections that overlap': JSON.stringify({ version: 3, sections: [{ offset: { line: 9, column: 0 }, map }, { offset: { line: 1, column: 0 }, map }] }),
  'with a section that is a link': JSON.stringify({ version: 3, sections: [{ offset: { line: 0, column: 0 }, url: 'program.js.map' }] }),
  'nested past all reason': `${'{"version":3,"sections":[{"offset":{"line":0,"column":0},"map":'.repeat(20_000)}null${'}]}'.repeat(20_000)}`,
  'an array': '[]',
  null: 'null'
})) {
  test(`a map that is ${name}`, async (t) => unmappedOnce(t, await broken(t, external, put(content))))
}

test('a map that is missing', async (t) => unmappedOnce(t, await broken(t, external)))
test('a map that is a directory', async (t) => unmappedOnce(t, await broken(t, external, (folder) => fs.mkdirSync(path.join(folder, 'program.js.map')))))
test('a map that links to itself', async (t) => {
  unmappedOnce(t, await broken(t, external, (folder) => fs.symlinkSync('program.js.map', path.join(folder, 'program.js.map'))))
})
test('a program that is its own map', async (t) => unmappedOnce(t, await broken(t, '//# sourceMappingURL=program.js\n')))
test('a map on the network', async (t) => unmappedOnce(t, await broken(t, '//# sourceMappingURL=http://127.0.0.1:1/program.js.map\n')))
test('a map with an impossible name', async (t) => unmappedOnce(t, await broken(t, '//# sourceMappingURL=%E0%A4%A\n')))
test('an inline map that is not base64', async (t) => unmappedOnce(t, await broken(t, '//# sourceMappingURL=data:application/json;base64,&&&&\n')))
test('an inline map that is truncated', async (t) => unmappedOnce(t, await broken(t, maps.inline(map).slice(0, 200) + '\n')))

test('a map larger than the limit is not read', async (t) => {
  const result = await broken(t, external, (folder) => {
    put('{"version":3,"sources":["app.ts"],"names":[],"mappings":""')(folder)
    fs.truncateSync(path.join(folder, 'program.js.map'), 65 * 2 ** 20) // sparse: takes no room
  })
  unmappedOnce(t, result)
  t.is(result.counts['readFileSync program.js.map'], undefined)
})

test('a map that is a pipe does not hang the program', async (t) => {
  unmappedOnce(t, await broken(t, external, (folder) => execFileSync('mkfifo', [path.join(folder, 'program.js.map')])))
})
