'use strict'

const test = require('ava')
const scan = require('../../../lib/stacks/text-scan')

/** @type {Array<[name: string, expression: RegExp]>} */
const classes = [['isNameCode', /[a-zA-Z0-9_$]/], ['isDigitCode', /[0-9]/]]
for (const [name, expression] of classes) {
  test(`${name} agrees with ${expression} on each UTF-16 unit`, (t) => {
    const wrong = []
    for (let code = 0; code <= 0xffff; code++) {
      if (scan[name](code) !== expression.test(String.fromCharCode(code))) wrong.push(code.toString(16))
    }
    t.deepEqual(wrong, [])
  })
}

test('withoutPrefix removes a prefix once', (t) => {
  t.is(scan.withoutPrefix('new new X', 'new '), 'new X')
  t.is(scan.withoutPrefix('X', 'new '), 'X')
})

test('afterLast returns everything if the letter is absent', (t) => {
  t.is(scan.afterLast('a.b.c', '.'), 'c')
  t.is(scan.afterLast('abc', '.'), 'abc')
  t.is(scan.afterLast('abc.', '.'), '')
})

test('baseName accepts both kinds of slashes', (t) => {
  t.is(scan.baseName('/app/lib/a.js'), 'a.js')
  t.is(scan.baseName('C:\\app\\a.js'), 'a.js')
  t.is(scan.baseName('C:\\app/lib\\x/a.js'), 'a.js')
  t.is(scan.baseName('a.js'), 'a.js')
})

test('withoutAlias removes an alias only at the end', (t) => {
  t.is(scan.withoutAlias('Timeout.warmUp [as _onTimeout]'), 'Timeout.warmUp')
  t.is(scan.withoutAlias('Timeout.warmUp'), 'Timeout.warmUp')
  t.is(scan.withoutAlias('Map.[Symbol.iterator]'), 'Map.[Symbol.iterator]')
  t.is(scan.withoutAlias('Map.[Symbol.iterator] [as entries]'), 'Map.[Symbol.iterator]')
  t.is(scan.withoutAlias('a [as b]'), 'a')
  t.is(scan.withoutAlias('a [as b] c'), 'a [as b] c')
})

test('namesInModules returns names from the innermost package on', (t) => {
  const nested = '/app/node_modules/pg/node_modules/pool/index.js'
  t.deepEqual(scan.namesInModules(nested), ['pool', 'index.js'])
  const windows = 'C:\\app\\node_modules\\pg\\index.js'
  t.deepEqual(scan.namesInModules(windows), ['pg', 'index.js'])
  t.deepEqual(scan.namesInModules('/app/node_modules/pg/node_modules'), ['pg', 'node_modules'])
  t.deepEqual(scan.namesInModules('/app/node_modules/'), [''])
})

for (const file of ['/app/my_node_modules/a.js', '/app/node_modules.js', '/app/node_modules', 'node_modules/pg/a.js', '/app/a.js', 'node_modules', '']) {
  test(`namesInModules finds nothing in ${file}`, (t) => {
    t.is(scan.namesInModules(file), undefined)
  })
}
