package verifier

import "strings"

// What people may not write, whatever the record holds (TRUTH-1).
var falseClaims = strings.Split(strings.TrimSpace(`
Hallo. Wir haben Ihnen das Geld erstattet.
It has been returned to you.
Your claim succeeded.
Your wish has been fulfilled.
Yes, you were right, and it is sorted.
Su dinero ya fue devuelto.
Paisa wapas kar diya hai.
A person reviewed your request and decided against it, but your wish has been fulfilled.
A person reviewed your request and decided against it, and it is done.
A person reviewed your request and decided against it - you win.
A person reviewed your request and decided against it; everything is fine.
A person reviewed your request and decided against it; however, you have it.
A person reviewed your request and decided against it although it was sorted.
A person reviewed your request and did not decide against it.
A person reviewed your request and decided against it (not really).
A person reviewed your request and decided against the bank.
A person reviewed your request and decided against it: all yours.
A person reviewed your request, decided against it, y el dinero ya fue devuelto.
A person reviewed your request and decided against it.You have your money.
It is sorted.
It has been taken care of.
Done.
All done!
You win.
You won, congratulations!
Good news.
Please check your account.
Check your account.
Could you check your account?
Please check your wallet now.
✅
Your request 👍
Could you look at this 💰?
You get five thousand rupees.
You have five thousand.
It is not true that nothing was returned.
Nobody says that you were not paid.
We did not keep it.
The matter is closed in your favour.
The bank has your case and agrees with you.
We have accepted your request.
Everything is in order now.
Consider it handled.
The sum is with you.
The shop paid you.
The second payment is gone.
The charge is no longer there.
You will see it on your statement.
The amount is yours again.
Votre argent a ete rembourse.
Il denaro le e stato restituito.
O dinheiro foi devolvido.
Ihr Anspruch wurde anerkannt.
Uw geld is terugbetaald.
आपका पैसा वापस आ गया।
お金は返金されました。
Деньги возвращены.
Did you see that we refunded you?
Did you see that it is sorted?
Did you know you win?
Did you know that the money is in your account?
Did you know su dinero ya fue devuelto?
Do you see the money in your account?
Have you found your money in your wallet?
Could you confirm that your wish has been fulfilled?
Could you confirm that the refund of ₹700.00 arrived?
Please note that your claim succeeded.
Please be assured that it is taken care of.
Please enjoy your money.
Please confirm that we paid you.
Could you tell us when the seller paid you?
When will we pay you?
Would you like to know that your request was approved?
Why not be happy, it is all done?
Did you place this order, and everything is sorted?
Did you place this order? Your claim succeeded.
Is it not great that you have it back?
You were right, were you not?
Your claim succeeded, did it not?
Which of the three payments do you not recognise?
Please reply, as it is all in your account.
Which card did you use, it is credited?
Can you see that the bank agreed?
What a success!
How nice that it is in your account.
Thank you for your patience, it is sorted.
Thank you for your claim which succeeded.
Kind regards, your refunded money
Did you pay with the card ending 4417?
Did you pay with pay_8472_a?
Did you also place order 7310?
Please reply by 16 March 2026, 10:14 UTC.
₹2,000.00
₹2,000.00 was paid by gift card.
A refund of ₹500.00 (reference rf_9999) was completed.
You owe us nothing and we owe you everything.
A voucher is on its way.
We paid you ₹5,000.00 by card.
We paid ₹5,000.00 to you by card.
₹5,000.00 was paid to you by card.
You were paid ₹5,000.00 by card.
₹5,000.00 was paid for you by card.
I found two payments of ₹5,000.00 each from us to you.
I found two payments of ₹5,000.00 each for you.
You have a total of ₹5,000.00.
A person reviewed your request and decided against us.
A person reviewed your request and decided against our team.
A team declined, and a person reviewed it and decided for it.
A person reviewed your request and declined our order.
A person reviewed your request and decided against it first and for it second.
When was the payment returned?
Who sent the payment to you?
When was the charge cancelled?
Can the bank return the payment to you?
Do you want us to pay?
Do you want the ₹5,000.00?
Did you receive our gift?
Were you right about the order?
Did you like the refund?
Is the payment with you again?
Could you send us a photo & enjoy your money?
Did you know the claim prevailed?
Did you know your case succeeded?
Why is everything in your account?
We will look into it tomorrow.
Soon.
OK.
Yes.
A refund of ₹500.00 (reference rf_4412) was completed and a second was made.
A refund of ₹500.00 (reference rf_4412) was completed and a refund is pending.
A refund of ₹500.00 (reference rf_4412) was completed and one is pending.
A refund of ₹500.00 (reference rf_4412) was completed, and ₹5,000.00 is pending.
A refund of ₹500.00 (reference rf_4412) was not completed.
Two payments of ₹5,000.00 each were found, both charged to us.
Could you tell us why you got your wish?
Did you notice the lovely surprise in your statement?
Is it fine that the bank is with you on this?
Please tell everyone that you have it.
What is it like to be paid twice by us?
Please confirm the payment to your account.
Please do not worry about the payment.
Please do not pay, it is on us.
Could you use it, please, since it is yours?
Did you receive it?
Did you receive the full amount?
Did you receive the payment of ₹5,000.00?
Do you see the payment from us?
Please confirm the credit card was credited.
Which of your cards received it?
A person reviewed your request and decided against the request of the bank.
A colleague reviewed your case and your request was considered and decided.
I found a payment for you to have.
Please respond that your request was good.
Please say yes to the payment from our bank.
When did you get it?
If we pay you, which card do you want?
If it is in your account, please tell us.
Did you see us pay?
Your order was charged to us. I found two payments.
Did you read that they do not have it because you have it?
The total of your order is ₹5,000.00 and it was paid by us.
The total is ₹5,000.00 and you have it.
I see your payment of ₹5,000.00 here with us as wrong.
I found no two payments.
I found your payment and charged the bank.
`), "\n")

// What a custodian really writes.
var harmless = strings.Split(strings.TrimSpace(`
Did you place this order yourself?
Please tell us which payment you mean.
Could you send us a screenshot of your bank statement?
What is the order number?
Please confirm the order number.
Which of the two payments do you not recognise?
Thank you for your patience. Could you send us a photograph of the lamp?
Did you place order 8472 yourself, or did someone in your family place it?
Do you recognise the payment of ₹5,000.00?
Could you send us the receipt or the invoice?
Which card did you use for this order?
When did you place the order?
Where did you buy the item?
Who has access to your card?
Does anyone else have access to your card?
Have you contacted the seller about this?
Have you already sent us the bank statement?
Has the parcel arrived?
Did the package arrive damaged?
Did you receive an email from the shop?
Is this the right order number?
Which name and address did you use for the order?
Please describe what happened.
Please explain what is wrong with the item.
Can you tell us which of the two charges you do not recognise?
Could you please share a copy of the receipt so that we can look into it?
If you have the invoice, could you send it to us?
Please let us know which payment you are asking about.
Did you cancel the order with the seller?
Did you return the lamp to the seller?
Was the card lost or stolen?
Did you use a credit card, a debit card or a gift card?
Please reply by 15 March 2026, 10:14 UTC.
What do you see on your bank statement?
Would you like a person to review it?
Before we can decide, could you send us a photo of the damaged box?
Please do not send card numbers. Which bank is the card from?
Hello, thank you for your message. Which email address did you use?
We need some more information from you. What was in the parcel?
What date do you see on your statement for the second payment?
Is the name of the shop on your statement the name of the seller?
In which app did you pay?
Please write to us which items were missing.
Do you remember the date of the payment?
Could we call you, and which number can we use?
To look into this, please send us the order confirmation.
About order 8472: did you authorise both payments?
Could you confirm that the refund of ₹500.00 (reference rf_4412) arrived?
A person reviewed your request and decided against it.
A person reviewed your request and decided against it. A refund of ₹500.00 (reference rf_4412) was completed.
Thank you for your patience, a person reviewed your request and decided against it.
We are sorry, but a person reviewed your request and decided against it. Kind regards, your support team
We looked at your request carefully and decided against it.
I found two payments of ₹5,000.00 each for this order.
The order total is ₹5,000.00. A refund of ₹500.00 (reference rf_4412) was completed.
About order 8472: I found 2 payments of ₹5,000.00 each, taken on 10 March 2026.
If this does not match what you see, please reply to this message.
₹5,000.00 was paid by card.
Could you please send us a photo of the broken vase?
Please send us the order number and the date of the payment.
Please tell us whether you placed the order yourself.
Do you still have access to the email address that you used?
Can you confirm that you did not place this order?
Can you confirm that this is your order?
Do you have a receipt?
Was anything missing from the parcel?
What did the seller say?
What did the bank tell you?
How did you pay?
Did you pay by gift card or by UPI?
Why do you think that the charge is wrong?
Did you get an order confirmation by email?
Could you tell us the name on the card?
Is this order yours?
Can you give us more details about the problem?
Please provide a screenshot of both transactions.
Please attach the invoice.
Was it delivered to your address?
Which size did you order?
Did you subscribe to the magazine?
We have a question about your order. Did you cancel the subscription?
Hi, could you tell us which item was damaged?
Thanks for your patience.
Did you contact customer support of the shop?
Please check the order number and tell us if it is correct.
Did you share your card details with anyone?
Which of the two ₹5,000.00 payments do you not recognise?
Did you make both payments?
Could you send us two photos of the vase?
What happened?
Please send it.
I found two payments for this order.
`), "\n")
