'use strict'

// Output of commands for a process with control characters in every name. None of them may reach the caller's
// terminal, which may be root's.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { node } = require('../helpers/run')
const { livePrograms, main } = require('../helpers/live')

const { start, directory } = livePrograms(test)

// Title, clipboard and link (OSC), clear (CSI), conceal (SGR), C1 of the same, line separator, bidi
const HOSTILE = '\x1b]0;PWNED\x07\x1b]52;c;cHduZWQ=\x07\x1b]8;;http://evil\x1b\\\x1b[2J\x1b[8m\x9b2J\x9d0;x\x9c\u2028\u202e\u2066'
const SHOWN = 'PWNED'

const SOURCE = `
  const bad = ${JSON.stringify(HOSTILE)}
  const { AsyncResource } = require('node:async_hooks')
  const http = require('node:http')
  const net = require('node:net')
  process.title = bad
  const functions = {
    [bad + 'open'] () { return net.createServer().listen(0, '127.0.0.1') },
    [bad + 'serve'] (request, response) { functions[bad + 'work'](); hang().catch(() => {}); setTimeout(() => response.end(), 5) },
    [bad + 'work'] () { for (const end = Date.now() + 30; Date.now() < end;); },
    [bad + 'tick'] () {},
    [bad + 'leak'] () { setInterval(functions[bad + 'tick'], 50) }
  }
  const hang = { async [bad + 'hang'] () { await new Promise((resolve) => { keep.push(resolve) }) } }[bad + 'hang']
  const keep = []
  functions[bad + 'open']()
  new AsyncResource(bad + 'Type').runInAsyncScope(() => functions[bad + 'open']())
  new AsyncResource(bad + 'Type').runInAsyncScope(hang)
  const server = http.createServer(functions[bad + 'serve']).listen(0, '127.0.0.1', () => {
    const { port } = server.address()
    setInterval(() => {
      http.get({ port, path: '/PWNED', agent: false }, (response) => response.resume()).on('error', () => {})
    }, 100)
    setInterval(functions[bad + 'leak'], 300)
    console.log('ready')
  })`

/** Lists what a terminal would obey, but for the colours of the command. @param {string} text */
function commandsIn (text) {
  return text.replace(/\x1b\[(?:1|2|22|31|32|33|36|39)m/g, '') // eslint-disable-line no-control-regex
    .match(/[^\n\x20-\x7e\u00a0-\u061b\u061d-\u200d\u2010-\u2027\u202f-\u2065\u206a-\uffff]+/g)
}

/**
 * @param {import('ava').ExecutionContext} t
 * @param {string[]} args
 * @param {object} [options]
 * @param {boolean} [options.told] the hostile names are in the output
 * @param {number} [options.code]
 */
async function ask (t, args, { told = true, code = 0 } = {}) {
  for (const env of [{ NO_COLOR: '1' }, { FORCE_COLOR: '1' }]) {
    const { stdout, stderr, code: ended } = await node([main, ...args], { env })
    const name = `${args.join(' ')} ${JSON.stringify(env)}`
    t.is(ended, code, `${name}\n${stderr}`)
    t.is(commandsIn(stdout), null, name)
    t.is(commandsIn(stderr), null, name)
    if (told) t.true(`${stdout}${stderr}`.includes(SHOWN), `${name}\n${stdout}${stderr}`)
  }
}

const spans = path.join(directory, 'spans.jsonl')
const socket = path.join(directory, 'socket')

test.serial('commands that query processes print no control characters', async (t) => {
  const { pid } = await start(SOURCE, { env: { LONGSTACK_SOCKET: socket, LONGSTACK_SPANS: spans } })
  await ask(t, ['why', socket])
  await ask(t, ['why', '--only', 'TCP', String(pid)])
  await ask(t, ['why', '--json', socket])
  await ask(t, ['top', '--once', socket])
  await ask(t, ['top', '--once', '--json', socket])
  await ask(t, ['metrics', socket])
  await ask(t, ['diff', '--seconds', '2', socket])
  await ask(t, ['attach', '--seconds', '2', '--blocked', '10', socket])
  await ask(t, ['profile', '--seconds', '1', String(pid)])
  await ask(t, ['--seconds', '3', socket])
  await ask(t, ['--seconds', '3', '--json', socket])
})

test.serial('an untraced process is queried through its inspector', async (t) => {
  const { pid } = await start(SOURCE, { traced: false })
  await ask(t, ['why', String(pid)], { told: false })
  await ask(t, ['metrics', String(pid)])
})

test.serial('a blocked process is reported with its stack', async (t) => {
  const { pid } = await start(`
    const bad = ${JSON.stringify(HOSTILE)}
    const functions = { [bad + 'spin'] () { for (;;); } }
    console.log('ready')
    setTimeout(functions[bad + 'spin'], 10)`)
  await ask(t, ['why', String(pid)], { code: 1 })
})

test.serial('reports of files print no control characters', async (t) => {
  t.true(fs.statSync(spans).size > 0)
  await ask(t, ['report', spans])
  await ask(t, ['report', '--full', '--tree', spans])
  await ask(t, ['report', '--markdown', spans])
  await ask(t, ['report', '--json', spans])
  await ask(t, ['report', '--trace', '-', spans])
  await ask(t, ['report', path.join(directory, `${HOSTILE.replaceAll('/', '')}gone`)], { code: 1 })
})

test.serial('profile and doctor work on a program with hostile names', async (t) => {
  const file = path.join(directory, 'short.js')
  fs.writeFileSync(file, `const bad = ${JSON.stringify(HOSTILE)}
    const functions = { [bad + 'later'] () { setTimeout(() => { for (const end = Date.now() + 20; Date.now() < end;); }, 5) } }
    setTimeout(functions[bad + 'later'], 5)`)
  await ask(t, ['profile', file])
  await ask(t, ['profile', '--json', file])
  await ask(t, ['doctor'], { told: false })
  await ask(t, [HOSTILE], { code: 2 })
})
