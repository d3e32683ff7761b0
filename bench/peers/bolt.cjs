// Peer: Bolt for JavaScript, its HTTPReceiver, signature verification on, one app_mention handler.
// WORKERS=2 forks a node:cluster.
const cluster = require('node:cluster');
const port = Number(process.env.PORT || 3000);
const workers = Number(process.env.WORKERS || 1);
if (workers > 1 && cluster.isPrimary) {
  for (let i = 0; i < workers; i++) cluster.fork();
} else {
  const { App, HTTPReceiver, LogLevel } = require('@slack/bolt');
  const receiver = new HTTPReceiver({ endpoints: ['/webhooks/slack/events'], signingSecret: '0123456789abcdef0123456789abcdef', logLevel: LogLevel.ERROR });
  const app = new App({
    receiver, logLevel: LogLevel.ERROR,
    authorize: async () => ({ botToken: 'xoxb-bench', botId: 'B0BENCH01', botUserId: 'U0BOT0001' }),
  });
  let n = 0;
  app.event('app_mention', async ({ event }) => { n += event.text.length; });
  app.start({ port, host: '127.0.0.1' }).then(() => {});
}
