'use strict'

// File names work in directories with odd names: frames of hops and of source maps, links, spans and their
// reports, the socket of a process. longstack itself is in such a directory, too.

const { spawn } = require('node:child_process')
const { once } = require('node:events')
const fs = require('node:fs')
const path = require('node:path')
const { pathToFileURL } = require('node:url')
const test = require('ava')
const { Layouts } = require('../helpers/layouts')
const { oddNames } = require('../helpers/odd-names')
const { inherited, node, runsAll, split } = require('../helpers/run')
const { noTerminal, onTerminal } = require('../helpers/terminal')
const { recordsOf } = require('../helpers/records')
const { watched } = require('../helpers/watchdog')

const reason = process.platform === 'win32' ? 'not tried: Windows allows no such names' : noTerminal()

const SERVICE = `
const http = require('node:http')
process.on('SIGUSR1', () => console.log('asked by signal'))
const server = http.createServer(function handler (request, response) {
  setTimeout(() => response.end('answer'), 500)
}).listen(0, '127.0.0.1', function listening () {
  http.get({ port: server.address().port, agent: false }, function answered (response) {
    response.resume().on('end', () => process.env.LONGSTACK_SOCKET ? console.log('ready') : server.close())
  })
})
`
const LATER = "setTimeout(function later () { throw new Error('told') }, 1)\n"
/** Its first line is line 3 of the source. */
const MAP = { version: 3, file: 'generated.js', sources: ['the source.ts'], sourcesContent: [LATER], names: [], mappings: 'AAEA' }
const BLOCKING = `
setTimeout(function block () { for (const end = Date.now() + 600; Date.now() < end;); }, 1000)
`

const trees = new Layouts()
test.after.always(() => trees.remove())

if (reason !== undefined) test(reason, (t) => t.pass())

for (const [i, name] of (reason === undefined ? oddNames : []).entries()) {
  if (!runsAll && i % 4 !== 3) continue
  const { cwd: directory, register } = trees.make('plain', name)
  const cli = path.join(path.dirname(register), 'cli', 'main.js')
  const preload = ['-r', register]
  const title = JSON.stringify(name)
  /** @param {string} file @param {string} text @returns {string} its path */
  const write = (file, text) => {
    fs.writeFileSync(path.join(directory, file), text)
    return path.join(directory, file)
  }

  test(`${title}: frames have V8's positions, or those of a source map`, async (t) => {
    const file = write('later.cjs', LATER)
    const generated = write('generated.js', `${LATER}//# sourceMappingURL=generated.js.map\n`)
    write('generated.js.map', JSON.stringify(MAP))
    for (const [args, place] of /** @type {const} */ ([
      [[file], `${file}:1:1`],
      [[generated], `${path.join(directory, 'the source.ts')}:3:1`],
      [['--enable-source-maps', generated], `${path.join(directory, 'the source.ts')}:3:1`]
    ])) {
      const { stderr, code } = await node([...preload, ...args])
      t.is(code, 1)
      const { head, hops } = split(stderr)
      t.true(head.includes(place.replace(/:1$/, ':')), stderr)
      t.true(hops[0].frames.includes(`at Object.<anonymous> (${place})`), stderr)
    }
  })

  test(`${title}: terminal links lead to the file`, async (t) => {
    const file = write('later.cjs', LATER)
    const { text, plain, code } = await onTerminal('', { file, preload: false, args: preload, env: { FORCE_HYPERLINK: '1' } })
    t.is(code, 1)
    t.true(plain.includes(`at Object.<anonymous> (${file}:1:1)`), plain)
    const links = text.split('\u001b]8;;').slice(1).map((rest) => rest.split('\u001b')[0])
      .filter((url) => url !== '').map((url) => new URL(url).pathname)
    // Terminals find lines by themselves; Node finds no package with `exports` behind a backslash
    const isWithout = name === 'line\nfeed' || name === 'back\\slash'
    t.deepEqual(links.map(decodeURIComponent), isWithout ? [] : [file, file])
  })

  test(`${title}: spans and their reports are right`, async (t) => {
    const file = write('service.cjs', SERVICE)
    const spans = path.join(directory, 'spans.jsonl')
    for (const to of [spans, pathToFileURL(spans).href]) {
      const { stderr, code } = await node([...preload, file], { env: { LONGSTACK_SPANS: to } })
      t.deepEqual([stderr, code], ['', 0])
    }
    const records = recordsOf(fs.readFileSync(spans, 'utf8'))
    t.is(records.length, 4)
    for (const { attributes } of records) t.true(attributes['code.stacktrace'].includes(`(${file}:`))
    const report = async (/** @type {string[]} */ ...flags) => {
      const { stdout, stderr, code } = await node([cli, 'report', spans, ...flags])
      t.deepEqual([stderr, code], ['', 0], String(flags))
      return stdout
    }
    t.regex(await report(), /at handler \(service\.cjs:5\)/)
    t.true((await report('--full')).includes('/service.cjs:'))
    for (const flag of ['--tree', '--markdown']) t.regex(await report(flag), /handler \(service\.cjs:5\)/)
    t.true((await report('--json')).includes(JSON.stringify(`handler (${file}:5:3)`)))
    if (name === 'back\\slash') return // Node resolves no package with `exports` there, such as d3
    const page = path.join(directory, 'report.html')
    t.is((await node([cli, 'report', spans, '--html', page])).code, 0)
    t.true(fs.statSync(page).size > 100_000)
  })

  watched(test, `${title}: a blocking callback`, async (t) => {
    const file = write('blocking.cjs', BLOCKING)
    const { stderr } = await node([...preload, file], { env: { LONGSTACK_BLOCKED: '200', LONGSTACK_CAPTURE: 'native' } })
    t.true(stderr.includes(`at block (${file}:2:`), stderr)
  })

  test(`${title}: longstack why works through a socket`, async (t) => {
    const file = write('service.cjs', SERVICE)
    const socket = path.join(directory, 's')
    const env = { ...inherited, LONGSTACK_SOCKET: socket }
    const child = spawn(process.execPath, [...preload, file], { env, stdio: 'pipe' })
    t.teardown(() => child.kill('SIGKILL'))
    let output = ''
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (text) => { output += text })
    await once(child.stdout, 'data')
    t.true(fs.statSync(socket).isSocket())
    const { stdout } = await node([cli, 'why', '--json', String(child.pid)])
    child.kill('SIGKILL')
    await once(child, 'close')
    t.is(output, 'ready\n') // not asked by a signal
    const { processes: [{ threads: [{ open }] }] } = JSON.parse(stdout)
    t.true(open.some((/** @type {any} */ { opened }) => opened[0]?.frames[0]?.fileName === file), stdout)
  })
}
