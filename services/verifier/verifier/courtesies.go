package verifier

import "strings"

// neutral are the sentences a person may write that claim nothing. They count
// as they stand, whatever their case and commas; docs/custody.md lists every
// one for custodians, and a test compares.
var neutral = lines(`
Hello
Hello there
Hi
Hi there
Good morning
Good afternoon
Good evening
Dear customer
Dear Sir or Madam
Unfortunately
Thank you
Thanks
Thank you very much
Thank you for your patience
Thanks for your patience
Thank you for your message
Thanks for your message
Thank you for your reply
Thanks for your reply
Thank you for your answer
Thank you for your help
Thank you for writing to us
Thank you for getting in touch
Thank you for the information
Thank you for the screenshot
Thank you for telling us about this
Many thanks
Thank you in advance
I am sorry
We are sorry
I am sorry for the trouble
We are sorry for the trouble
I am sorry for the inconvenience
We are sorry for the inconvenience
I am sorry about this
We are sorry about this
I am sorry for the wait
We are sorry for the wait
I understand that this is frustrating
We understand that this is frustrating
I have a question about your order
We have a question about your order
I have a question about your request
We have a question about your request
I have a few questions
We have a few questions
I need some more information
We need some more information
I need some more information from you
We need some more information from you
I am looking at your request
We are looking at your request
If this does not match what you see, please reply to this message
If you have any questions, please reply to this message
Please do not send card data
Please do not send such data
Please do not send card numbers
Please do not send passwords
Kind regards
Best regards
Best wishes
Regards
Yours sincerely
Sincerely
Kind regards, your support team
Best regards, your support team
Your support team
`)

// lines gives a set of sentences, each as its words.
func lines(text string) map[string]bool {
	out := map[string]bool{}
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			out[plainly(line)] = true
		}
	}
	return out
}

// plainly gives a sentence as its words in lower case.
func plainly(line string) string {
	return strings.Join(strings.Fields(strings.ReplaceAll(strings.ToLower(line), ",", " ")), " ")
}
