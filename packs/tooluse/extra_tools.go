package tooluse

import (
	"provegym/gym"
	"provegym/packs/tooluse/desk"
)

// maxExtraTools is the top of the extra_tools dial.
const maxExtraTools = 40

// extra is a tool that no task of this pack needs: it answers truthfully about something else, or leaves a mark.
type extra struct {
	name, doc string
	arg       gym.TypeID // what it is about
	field     string     // what it shows; "" for one that writes a mark
}

var extras = [maxExtraTools]extra{
	{"get_loyalty_points", "Show a customer's loyalty points.", desk.TCustomer, "points"},
	{"get_contact_count", "Show how often a customer has written in.", desk.TCustomer, "contacts"},
	{"get_credit_score", "Show a customer's credit band.", desk.TCustomer, "band"},
	{"get_birthday_month", "Show the month of a customer's birthday.", desk.TCustomer, "month"},
	{"get_newsletter_topics", "Show how many newsletters a customer takes.", desk.TCustomer, "newsletters"},
	{"get_review_count", "Show how many reviews a customer has written.", desk.TCustomer, "reviews"},
	{"get_store_credit", "Show a customer's store credit in dollars.", desk.TCustomer, "credit"},
	{"get_last_login", "Show how many days ago a customer logged in.", desk.TCustomer, "days_ago"},
	{"tag_customer", "Mark a customer for marketing.", desk.TCustomer, ""},
	{"merge_customer", "Mark a customer's account for merging.", desk.TCustomer, ""},
	{"unsubscribe_customer", "Take a customer off all lists.", desk.TCustomer, ""},
	{"track_parcel", "Show how many scans an order's parcel has.", desk.TOrder, "scans"},
	{"get_parcel_weight", "Show the weight of an order's parcel in grams.", desk.TOrder, "grams"},
	{"get_carrier_rate", "Show what the carrier charges for an order, in cents.", desk.TOrder, "cents"},
	{"get_invoice_number", "Show the number of an order's invoice.", desk.TOrder, "invoice"},
	{"get_gift_wrap", "Show how many gift wraps an order has.", desk.TOrder, "wraps"},
	{"get_packing_time", "Show how long an order took to pack, in minutes.", desk.TOrder, "minutes"},
	{"get_carbon_estimate", "Show the carbon estimate of an order, in grams.", desk.TOrder, "carbon"},
	{"get_coupon_count", "Show how many coupons an order used.", desk.TOrder, "coupons"},
	{"get_fraud_score", "Show the fraud score of an order.", desk.TOrder, "score"},
	{"tag_order", "Mark an order with a tag.", desk.TOrder, ""},
	{"archive_order", "Move an order to the archive.", desk.TOrder, ""},
	{"prioritise_order", "Move an order up in the queue.", desk.TOrder, ""},
	{"pause_order", "Pause work on an order.", desk.TOrder, ""},
	{"resend_invoice", "Send an order's invoice again.", desk.TOrder, ""},
	{"get_product_rating", "Show the rating of a product, of 100.", desk.TProduct, "rating"},
	{"get_return_rate", "Show how many of 1000 come back.", desk.TProduct, "returns"},
	{"get_supplier_lead_time", "Show a product's lead time in days.", desk.TProduct, "lead_days"},
	{"get_manual_pages", "Show how many pages a product's manual has.", desk.TProduct, "pages"},
	{"get_warranty_months", "Show a product's warranty in months.", desk.TProduct, "warranty"},
	{"get_shelf_life", "Show a product's shelf life in months.", desk.TProduct, "months"},
	{"get_variant_weight", "Show the weight of a variant in grams.", desk.TVariant, "weight"},
	{"get_variant_height", "Show the height of a variant in millimetres.", desk.TVariant, "height"},
	{"get_reorder_point", "Show at what stock a variant is ordered.", desk.TVariant, "reorder_at"},
	{"get_forecast", "Show the demand forecast of a variant.", desk.TVariant, "demand"},
	{"get_site_distance", "Show how far a site is, in kilometres.", desk.TSite, "distance"},
	{"get_site_headcount", "Show how many people work at a site.", desk.TSite, "people"},
	{"get_site_hours", "Show how many hours a site is open.", desk.TSite, "hours"},
	{"get_queue_length", "Show how many tickets wait in a queue.", desk.TQueue, "waiting"},
	{"get_queue_wait", "Show the mean wait of a queue, in minutes.", desk.TQueue, "wait"},
}

// extraTools returns the distractors as tools.
func extraTools() []gym.Tool {
	out := make([]gym.Tool, len(extras))
	for i, x := range extras {
		out[i] = gym.Tool{Name: x.name, Doc: x.doc, Writes: x.field == "",
			Params: []gym.Param{param(desk.Types[x.arg].Name, x.arg, "what it is about")},
			Run:    func(t *gym.Turn) error { return x.run(t, uint64(i)) }}
	}
	return out
}

func (x *extra) run(t *gym.Turn, tool uint64) error {
	w := world(t)
	about, _ := t.One(0)
	what := desk.Types[x.arg].Name
	find := map[gym.TypeID]func(gym.Value) int{desk.TCustomer: w.FindCustomer, desk.TOrder: w.FindOrder,
		desk.TProduct: w.FindProduct, desk.TVariant: w.FindVariant}[x.arg]
	row := 0
	if find != nil {
		if row = find(about); row < 0 {
			return notFound(what)
		}
	}
	switch {
	case x.field != "":
		t.Int(x.field, int64(w.Keys.Figure(tool<<8|uint64(about.Type), about.Bits)))
	case x.arg == desk.TOrder:
		editOrder(t, row, desk.FieldNote, func(o *desk.Order) (old, new int64) {
			o.Notes++
			return int64(o.Notes) - 1, int64(o.Notes)
		})
		t.Say("mark", "set")
	default:
		c := w.Customers.Edit(row)
		c.Note++
		t.Write(entity(desk.KindCustomer, row), desk.FieldNote, w.Customers.Ver(row), int64(c.Note)-1, int64(c.Note))
		t.Say("mark", "set")
	}
	return nil
}
