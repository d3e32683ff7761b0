// Peer: Slack's own Socket Mode client for Node, one app_mention handler that acknowledges.
const { SocketModeClient, LogLevel } = require('@slack/socket-mode');
const client = new SocketModeClient({ appToken: 'xapp-bench', logLevel: LogLevel.ERROR, clientOptions: { slackApiUrl: `${process.env.PLATFORM}/api/` } });
let n = 0;
client.on('app_mention', async ({ event, ack }) => { n += event.text.length; await ack(); });
client.start();
