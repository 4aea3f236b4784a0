'use strict'

const neostandard = require('neostandard')

module.exports = [
  ...neostandard({ ignores: ['node_modules', 'types', 'test/fixtures/maps', '.cache', 'release'] }),
  { rules: { '@stylistic/max-len': ['error', { code: 110 }] } },
  // Expected texts, and programs in templates, may be longer.
  {
    files: ['test/**/*.js'],
    rules: {
      '@stylistic/max-len':
        ['error',
          { code: 110, ignoreStrings: true, ignoreTemplateLiterals: true, ignoreRegExpLiterals: true }]
    }
  },
  // Programs with domains are still to be left as they are.
  { files: ['lib/attribution/uncaught.js'], rules: { 'n/no-deprecated-api': 'off' } }
]
