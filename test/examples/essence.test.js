'use strict'

// examples/essence.js shows the idea in a few lines: the share of chains in the tables that it gets right,
// and its link in the README.

const fs = require('node:fs')
const path = require('node:path')
const test = require('ava')
const { node, root, split } = require('../helpers/run')
const { stories } = require('../helpers/stories')

const essence = path.join(root, 'examples', 'essence.js')
const THEMES = ['timers', 'promises', 'loops', 'beats', 'files', 'sockets', 'web', 'others']

/**
 * The named functions of a theme's own file in the hops of a text, those of each hop in a list.
 * @param {string} text
 * @param {string} file
 */
function functionsOf (text, file) {
  return split(text).hops.map(({ frames }) => frames.split('\n')
    .map((line) => /^ {4}at (?:async )?(?:\S+ )?(?:[\w$]+\.)*([\w$]+) (?:\[as \S+\] )?\(([^)]*):\d+:\d+\)/.exec(line))
    .flatMap((match) => match?.[2] === file && match[1] !== 'anonymous' ? [match[1]] : []))
    .filter((functions) => functions.length > 0)
}

test('the example\'s chains agree with those of the chain tables', async (t) => {
  let [all, right] = [0, 0]
  for (const theme of THEMES) {
    const file = path.join(root, 'test', 'fixtures', 'chains', `${theme}.js`)
    const expected = await stories(theme)
    const { stdout } = await node(['-r', essence, file])
    /** @type {Map<string, string>} */
    const texts = new Map(stdout.trim().split('\n').filter((line) => line.startsWith('{')).map((line) => {
      const { name, text } = JSON.parse(line)
      return [name, text]
    }))
    const names = Object.keys(expected)
    const wanted = (/** @type {string} */ name) => expected[name].chain.map(({ functions }) => functions)
      .filter((functions) => functions.length > 0)
    const passed = names.filter((name) => {
      return JSON.stringify(functionsOf(texts.get(name) ?? '', file)) === JSON.stringify(wanted(name))
    })
    all += names.length
    right += passed.length
    t.log(`${theme}: ${passed.length} of ${names.length} (${names.filter((name) => !passed.includes(name)).join(', ')})`)
    if (theme === 'timers') t.true(['timeout', 'immediate', 'tick', 'microtask', 'mixed'].every((name) => passed.includes(name)))
  }
  t.log(`${right} of ${all}`)
  t.true(right > all / 4)
})

test('it adds hops to thrown errors, and prints how long a request ran', async (t) => {
  const program = `
    const http = require('node:http')
    const server = http.createServer(async (request, response) => {
      await new Promise((resolve) => setTimeout(resolve, 5))
      const end = performance.now() + 20
      while (performance.now() < end);
      response.end()
    }).listen(0, () => http.get({ port: server.address().port }, (answer) => answer.resume().on('end', last)))
    function last () {
      server.close()
      setTimeout(function later () { throw new Error('thrown') }, 1)
    }`
  const { code, stderr } = await node(['-r', essence, '-e', program])
  t.is(code, 1)
  const [, ms] = /^GET \/ ran ([\d.]+) ms$/m.exec(stderr) ?? []
  t.true(Number(ms) >= 20, stderr)
  t.regex(stderr, /Error: thrown\n(?: {4}at .*\n)+ {2}── Timeout · \d+ ms earlier ──\n.*\blast\b/)
})

test('the README links to it, and it is short', (t) => {
  const text = fs.readFileSync(essence, 'utf8')
  t.true(text.split('\n').length <= 100)
  t.false(/require\('\.|longstack\//.test(text), 'without longstack')
  t.true(fs.readFileSync(path.join(root, 'README.md'), 'utf8').includes('(examples/essence.js)'))
})
